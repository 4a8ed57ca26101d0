# SPDX-License-Identifier: Apache-2.0
"""The claim that a job brings for its checkpoints, and volumes with the program, on a real API server."""

from typing import Any

import pytest

from tests.cluster.support.jobs import GROUP, job, wait_phase, wait_pods
from tests.cluster.support.kubelet import Kubelet
from tests.cluster.support.operator_process import OperatorProcess
from tools.cluster.rest import Api, Object

CLAIMS, CLAIM = "persistentvolumeclaims", "digits-checkpoints"
SIZE: Object = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
POD = "digits-chief-0-0"


def with_claim(retention: str = "Retain", **spec: Any) -> Object:
    """A job that brings its claim."""
    storage = {"volumeClaimTemplate": {"spec": {**SIZE, **spec}}, "retention": retention}
    return job(strategy="Mirrored", checkpoint={"storage": storage})


def end(api: Api, namespace: str) -> None:
    """Delete the job, and wait until its pods have gone."""
    api.delete("dtjobs", namespace, "digits")
    wait_pods(api, namespace)


def test_a_retained_claim_outlives_its_job_and_the_next_job_of_the_name_uses_it(
    shared_operator: OperatorProcess, api: Api, namespace: str, auto_kubelet: Kubelet
) -> None:
    api.create("dtjobs", namespace, with_claim())
    pods = wait_pods(api, namespace, POD)
    claim = api.get(CLAIMS, namespace, CLAIM)
    assert "ownerReferences" not in claim["metadata"]
    assert claim["metadata"]["labels"][f"{GROUP}/job-name"] == "digits"
    mounted = [one["persistentVolumeClaim"] for one in pods[POD]["spec"]["volumes"] if one["name"] == "checkpoints"]
    assert mounted == [{"claimName": CLAIM}]
    end(api, namespace)
    api.create("dtjobs", namespace, with_claim("Delete"))
    wait_phase(api, namespace, "Running")
    used = api.get(CLAIMS, namespace, CLAIM)
    assert used["metadata"]["uid"] == claim["metadata"]["uid"]
    assert "ownerReferences" not in used["metadata"], "the files of an earlier job do not go with this one"


def test_a_claim_with_retention_delete_goes_with_its_job(
    shared_operator: OperatorProcess, api: Api, namespace: str, auto_kubelet: Kubelet
) -> None:
    api.create("dtjobs", namespace, with_claim("Delete"))
    wait_phase(api, namespace, "Running")
    first = api.get(CLAIMS, namespace, CLAIM)["metadata"]
    assert first["ownerReferences"][0]["kind"] == "DistributedTrainingJob"
    end(api, namespace)
    api.create("dtjobs", namespace, with_claim("Delete"))
    api.wait_for(CLAIMS, namespace, CLAIM, lambda one: one is not None and one["metadata"]["uid"] != first["uid"])
    wait_phase(api, namespace, "Running")


@pytest.mark.parametrize(
    "volume",
    [
        {"persistentVolumeClaim": {"claimName": "code", "readOnly": True}},
        {"image": {"reference": "code:1", "pullPolicy": "IfNotPresent"}},
    ],
    ids=["claim", "image"],
)
def test_a_program_on_a_volume_is_mounted_read_only_in_every_pod(
    shared_operator: OperatorProcess, api: Api, namespace: str, volume: Object
) -> None:
    if "image" in volume and api.call("GET", "version")["minor"] == "34":
        pytest.skip("the API server of Kubernetes 1.34 removes volumes of kind image")
    source: Object = {"volume": volume, "path": "digits"}
    wanted = job()
    wanted["spec"]["program"] = {"entrypoint": "train.py", "source": source}
    api.create("dtjobs", namespace, wanted)
    for pod in wait_pods(api, namespace, POD, "digits-worker-0-0", "digits-worker-1-0").values():
        volumes = {one["name"]: one for one in pod["spec"]["volumes"]}
        assert volumes["dtjob-source"] == {"name": "dtjob-source", **volume}
        training = pod["spec"]["containers"][0]
        mount = {"name": "dtjob-source", "mountPath": "/etc/dtjob-source", "readOnly": True}
        assert mount.items() <= next(one for one in training["volumeMounts"] if one["name"] == "dtjob-source").items()
        assert {"name": "DTJOB_SOURCE", "value": "/etc/dtjob-source/digits"} in training["env"]
