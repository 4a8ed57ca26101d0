# SPDX-License-Identifier: Apache-2.0
"""Service, ConfigMap, claim and NetworkPolicy."""

# ruff: noqa: E501 (a table reads best with one case a line)
import json

import pytest

from dtjob.objects import labels, shared, topology
from dtjob.objects.manifest import Manifest
from dtjob.objects.pod.pod import pod
from dtjob.objects.readers import Readers
from tests.unit.operator import builders


def test_every_object_is_owned_and_labelled():
    job = builders.job()
    for made in shared.shared_objects(job):
        assert labels.controller_uid(made) == builders.JOB_UID
        assert labels.of(made)[labels.JOB_NAME] == "digits"
        assert made["metadata"]["namespace"] == "default"


def test_the_service_names_pods_before_they_are_ready():
    spec = shared.service(builders.job())["spec"]
    assert (spec["clusterIP"], spec["publishNotReadyAddresses"]) == ("None", True)
    assert [port["name"] for port in spec["ports"]] == ["tensorflow", "status"]
    assert len(shared.service(builders.job(program=False))["spec"]["ports"]) == 1


def test_the_service_selects_no_pod_of_an_earlier_job_of_the_same_name():
    """Its pods may still be ending, under the same host names."""
    (selector,) = shared.service(builders.job())["spec"]["selector"].items()
    assert selector in labels.of(pod(builders.job(), builders.task("worker-0"), 0)).items()
    assert selector not in labels.of(pod(builders.job(uid="earlier"), builders.task("worker-0"), 3)).items()


def test_the_config_map_holds_the_cluster_spec_and_is_named_after_it():
    job = builders.job()
    made = shared.config_map(job)
    assert json.loads(made["data"]["cluster.json"]) == topology.cluster_spec(job)
    assert made["immutable"] is True
    assert made["metadata"]["name"] == f"digits-cluster-{topology.cluster_hash(job)}"


def test_only_the_same_job_reaches_tensorflows_port():
    scraper = {"namespaceSelector": {"matchLabels": {"team": "monitoring"}}}
    readers = Readers("dtjob-system", (scraper,))
    own, others = shared.network_policy(builders.job(), readers)["spec"]["ingress"]
    assert own == {"from": [{"podSelector": {"matchLabels": {labels.JOB_UID: builders.JOB_UID}}}]}
    assert others["ports"] == [{"port": 2223, "protocol": "TCP"}]
    assert others["from"] == readers.peers()
    assert len(shared.network_policy(builders.job(program=False), readers)["spec"]["ingress"]) == 1


def test_the_network_policy_admits_the_operators_namespace_and_no_other():
    """Any namespace may have pods that are labelled like the operator or like Prometheus."""
    (operator,) = Readers("dtjob-system").peers()
    assert operator == {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "dtjob-system"}},
        "podSelector": {"matchLabels": {"app.kubernetes.io/name": "dtjob"}},
    }
    # outside the cluster there is no operator to let in: an empty `from` would admit everybody
    assert len(shared.network_policy(builders.job())["spec"]["ingress"]) == 1


def test_no_policy_where_none_is_wanted():
    kinds = [made["kind"] for made in shared.shared_objects(builders.job(network={"isolation": "None"}))]
    assert kinds == ["Service", "ConfigMap"]


@pytest.mark.parametrize(("retention", "owner"), [(None, None), ("Retain", None), ("Delete", builders.JOB_UID)])
def test_a_claim_is_owned_by_the_job_only_if_it_is_deleted_with_it(retention: str | None, owner: str | None):
    made = shared.claim(builders.claim_job(retention))
    assert (made["kind"], made["metadata"]["name"]) == ("PersistentVolumeClaim", "digits-checkpoints")
    assert labels.controller_uid(made) == owner
    assert labels.of(made)[labels.JOB_NAME] == "digits"
    assert made["spec"] == builders.CLAIM_TEMPLATE["spec"]


def test_a_claim_has_the_labels_and_annotations_of_its_template():
    template = {**builders.CLAIM_TEMPLATE, "metadata": {"labels": {"team": "vision"}, "annotations": {"a": "b"}}}
    made = shared.claim(builders.claim_job(volumeClaimTemplate=template))
    assert made is not None
    assert labels.of(made)["team"] == "vision"
    assert made["metadata"]["annotations"] == {"a": "b"}


def test_the_claim_comes_before_pods_and_the_chief_mounts_it():
    job = builders.claim_job(subPath="a")
    kinds = [one["kind"] for one in shared.shared_objects(job)]
    assert kinds == ["Service", "ConfigMap", "PersistentVolumeClaim", "NetworkPolicy"]
    made = pod(job, builders.task("chief-0"), 0)["spec"]
    assert {"name": "checkpoints", "persistentVolumeClaim": {"claimName": "digits-checkpoints"}} in made["volumes"]
    mounts = made["containers"][0]["volumeMounts"]
    assert {"name": "checkpoints", "mountPath": "/checkpoints", "subPath": "a"} in mounts
    assert shared.claim(builders.job()) is None


@pytest.mark.parametrize(
    ("found", "belongs"),
    [
        (shared.claim(builders.claim_job("Retain")), True),
        (shared.claim(builders.claim_job("Delete")), True),
        (shared.claim(builders.claim_job("Retain").model_copy(update={"metadata": builders.job(uid="b").metadata})), True),
        (shared.claim(builders.claim_job("Delete").model_copy(update={"metadata": builders.job(uid="b").metadata})), False),
        (shared.claim(builders.claim_job().model_copy(update={"metadata": builders.job(name="b").metadata})), False),
        (builders.stranger("PersistentVolumeClaim", "digits-checkpoints"), False),
        (shared.service(builders.job()), True),
        (shared.service(builders.job(uid="b")), False),
    ],
    ids=["own", "owned", "retained", "of-an-earlier-job", "of-another-job", "a-strangers", "service", "other-service"],
)  # fmt: skip
def test_a_retained_claim_belongs_to_the_next_job_of_its_name(found: Manifest, belongs: bool):
    assert shared.is_of(found, "digits", builders.JOB_UID) is belongs
