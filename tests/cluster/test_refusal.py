# SPDX-License-Identifier: Apache-2.0
"""The API server refuses every bad manifest of the table, saying field and advice, and takes every good one."""

import json
from collections.abc import Iterator

import pytest
import yaml

from tests.cluster.conftest import Kubectl
from tests.refusals import BAD, BEFORE, CHANGES, CHANGES_TAKEN, GOOD, WARNED, Bad, Manifest
from tests.refusals.good import LEFT_EMPTY
from tools.cluster.rest import CRD, Api, ApiError, Object
from tools.definition import FILE

SAMPLE = ("name-with-dot", "ps-with-Mirrored", "replicas-0", "unknown-role", "TF_CONFIG-in-program", "hdfs")
"""Rows that go through kubectl itself too."""


def names(rows: list[Bad]) -> list[str]:
    return [row.name for row in rows]


@pytest.fixture(scope="module")
def shared(api: Api) -> Iterator[str]:
    """One namespace for all rows: none of them is kept."""
    made = api.create("namespaces", None, {"metadata": {"generateName": "refusal-"}})
    yield made["metadata"]["name"]
    api.delete("namespaces", None, made["metadata"]["name"])


@pytest.fixture(scope="module")
def existing(api: Api, shared: str) -> Object:
    """The job that changes are tried on."""
    return api.create("dtjobs", shared, BEFORE)


def change(api: Api, namespace: str, existing: Object, manifest: Manifest) -> Object:
    """Replace the existing job by `manifest`, without keeping it."""
    meta = {**manifest["metadata"], "resourceVersion": existing["metadata"]["resourceVersion"]}
    return api.replace("dtjobs", namespace, {**manifest, "metadata": meta}, dryRun="All", fieldValidation="Strict")


@pytest.mark.parametrize("row", BAD, ids=names(BAD))
def test_bad_manifests_are_refused_with_field_and_remedy(api: Api, shared: str, row: Bad) -> None:
    with pytest.raises(ApiError) as refusal:
        api.create("dtjobs", shared, row.manifest, dryRun="All")
    for part in row.says:
        assert part in refusal.value.message


@pytest.mark.parametrize("manifest", [*GOOD.values(), *(row.manifest for row in WARNED)], ids=[*GOOD, *names(WARNED)])
def test_good_manifests_and_useless_fields_are_accepted(api: Api, shared: str, manifest: Manifest) -> None:
    assert api.create("dtjobs", shared, manifest, dryRun="All")["metadata"]["uid"]


def test_a_null_in_a_pod_template_is_stored_as_left_out(api: Api, namespace: str) -> None:
    stored = api.create("dtjobs", namespace, LEFT_EMPTY)
    worker = stored["spec"]["replicaSpecs"]["worker"]["template"]["spec"]
    assert worker == {"containers": [{"name": "tensorflow", "env": [{"name": "A"}]}]}


@pytest.mark.parametrize("row", CHANGES, ids=names(CHANGES))
def test_bad_changes_are_refused(api: Api, shared: str, existing: Object, row: Bad) -> None:
    with pytest.raises(ApiError) as refusal:
        change(api, shared, existing, row.manifest)
    for part in row.says:
        assert part in refusal.value.message


@pytest.mark.parametrize("name", CHANGES_TAKEN)
def test_allowed_changes_are_accepted(api: Api, shared: str, existing: Object, name: str) -> None:
    assert change(api, shared, existing, CHANGES_TAKEN[name])


@pytest.mark.parametrize("row", [row for row in BAD if row.name in SAMPLE], ids=lambda row: row.name)
def test_kubectl_apply_refuses_bad_manifests(kubectl: Kubectl, row: Bad) -> None:
    done = kubectl("apply", "-f", "-", stdin=json.dumps(row.manifest), check=False)
    assert done.returncode == 1
    for part in row.says:
        assert part in done.stderr


def test_kubectl_applies_the_smallest_job_and_defaults_are_filled_in(
    api: Api, namespace: str, kubectl: Kubectl
) -> None:
    kubectl("apply", "-f", "-", stdin=yaml.safe_dump(GOOD["smallest"]))
    spec = api.get("dtjobs", namespace, "digits")["spec"]
    assert spec == {
        **GOOD["smallest"]["spec"],
        "suspend": False,
        "successPolicy": "Chief",
        "cleanPodPolicy": "Running",
        "failurePolicy": {
            "maxRestartsWithoutProgress": 10,
            "maxDisruptionsWithoutProgress": 100,
            "backoff": {"initialSeconds": 10, "maxSeconds": 300},
        },
        "scheduling": {},
        "network": {"port": 2222, "statusPort": 2223, "rendezvousPort": 2224, "dataPort": 2225, "isolation": "Job"},
    }


def test_kubectl_get_shows_the_columns(api: Api, namespace: str, kubectl: Kubectl) -> None:
    made = api.create("dtjobs", namespace, GOOD["chief-and-workers"])
    status = {
        "phase": "Running",
        "reason": "TasksRunning",
        "ready": "3/4",
        "restarts": {"total": 2},
        "progress": {"step": 120, "percentage": 42, "estimatedRemainingSeconds": 200},
        "checkpoint": {"step": 100},
        "goodput": {"percentage": 93},
        "workers": {"desired": 2, "replicas": 2},
    }
    api.replace("dtjobs", namespace, {**made, "status": status}, "status")
    heads, row = kubectl("get", "dtjobs").stdout.splitlines()
    assert heads.split() == ["NAME", "PHASE", "READY", "STEP", "RESTARTS", "REASON", "AGE"]
    assert row.split()[:-1] == ["digits", "Running", "3/4", "120", "2", "TasksRunning"]
    wide_heads, wide = kubectl("get", "dtjob", "-o", "wide").stdout.splitlines()
    assert wide_heads.split()[-6:] == ["STRATEGY", "PROGRESS(%)", "ETA(S)", "CHECKPOINT", "GOODPUT(%)", "WORKERS"]
    assert wide.split()[-6:] == ["MultiWorkerMirrored", "42", "200", "100", "93", "2"]
    for name in ("training", "dtj"):
        assert "digits" in kubectl("get", name).stdout
    assert "digits" not in kubectl("get", "all").stdout, "`kubectl delete all --all` would delete it"
    assert "digits" in kubectl("get", "dtj", "--field-selector=spec.strategy=MultiWorkerMirrored").stdout
    assert "digits" not in kubectl("get", "dtj", "--field-selector=status.phase=Failed").stdout


def test_a_status_write_goes_through_and_keeps_what_the_schema_does_not_know(api: Api, namespace: str) -> None:
    made = api.create("dtjobs", namespace, GOOD["everything"])
    status = {
        "internal": {"attempts": {"others": 1, "exceptions": {"worker-1": 2}}, "later": [{"field": 1.5}]},
        "lastFailure": {"task": "worker-1", "pod": "a", "exitCode": 1, "later": 1},
        "later": {"field": 1},
    }
    stored = api.replace("dtjobs", namespace, {**made, "status": status}, "status")
    assert stored["status"] == status


def test_kubectl_explain_describes_the_roles(kubectl: Kubectl) -> None:
    text = " ".join(kubectl("explain", "dtjob.spec.replicaSpecs").stdout.split())
    for part in ("chief", "worker", "ps", "evaluator", "evaluates checkpoints beside the training"):
        assert part in text
    assert "-required-" in kubectl("explain", "dtjob.spec").stdout


def test_plain_kubectl_apply_takes_the_definition(api: Api, kubectl: Kubectl) -> None:
    """It notes what it applied in an annotation, which an API server takes up to 256 KiB of: as at the first time (the
    fixture `cluster` applies it so), and again, when nothing changes."""
    assert "unchanged" in kubectl("apply", "-f", str(FILE)).stdout
    applied = api.get("customresourcedefinitions", None, CRD)["metadata"]["annotations"]
    assert json.loads(applied["kubectl.kubernetes.io/last-applied-configuration"])["metadata"]["name"] == CRD
