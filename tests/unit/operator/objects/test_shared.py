# SPDX-License-Identifier: Apache-2.0
"""Service, ConfigMap and NetworkPolicy."""

import json

from dtjob.objects import labels, shared, topology
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
