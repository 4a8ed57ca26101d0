# SPDX-License-Identifier: Apache-2.0
"""What counts as drift of a shared object, and what stays others'."""

from typing import Any

import pytest

from dtjob.controller.stored_fields import kept
from dtjob.objects import drift, labels, shared
from dtjob.objects.manifest import Manifest
from tests.unit.operator import builders

JOB = builders.job()
SERVICE, CONFIG_MAP, POLICY = shared.shared_objects(JOB)


def as_stored(wanted: Manifest) -> Manifest:
    """As a real API server (1.36) returns what was created from it."""
    stored = builders.stored(wanted)
    if wanted["kind"] == "Service":
        for port in stored["spec"]["ports"]:
            port |= {"protocol": "TCP", "targetPort": port["port"]}
        stored["spec"] |= {
            "clusterIPs": ["None"],
            "type": "ClusterIP",
            "sessionAffinity": "None",
            "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack",
            "internalTrafficPolicy": "Cluster",
        }
    return stored


def changed(wanted: Manifest, **spec: Any) -> Manifest:
    there = as_stored(wanted)
    there["spec"] |= spec
    return there


@pytest.mark.parametrize("wanted", [SERVICE, CONFIG_MAP, POLICY], ids=lambda one: one["kind"])
def test_defaults_of_the_api_server_and_additions_of_others_are_no_drift(wanted: Manifest):
    there = as_stored(wanted)
    assert drift.drifted(wanted, there) == ""
    there["metadata"]["labels"]["mesh.example.com/revision"] = "7"
    there["metadata"]["annotations"] = {"mesh.example.com/at": "noon"}
    assert drift.drifted(wanted, there) == ""
    assert drift.drifted(wanted, kept(there)) == ""


@pytest.mark.parametrize(
    ("there", "field"),
    [
        (changed(POLICY, ingress=[{}]), "spec.ingress"),
        (changed(POLICY, ingress=[*POLICY["spec"]["ingress"], {"from": [{"namespaceSelector": {}}]}]), "spec.ingress"),
        (changed(POLICY, ingress=[]), "spec.ingress"),
        (changed(POLICY, podSelector={}), "spec.podSelector"),
        (changed(POLICY, policyTypes=["Egress"]), "spec.policyTypes"),
        (changed(POLICY, policyTypes=["Ingress", "Egress"], egress=[]), "spec.policyTypes"),
        (changed(SERVICE, selector={"app": "other"}), "spec.selector"),
        (changed(SERVICE, selector={**SERVICE["spec"]["selector"], "app": "other"}), "spec.selector"),
        (changed(SERVICE, ports=SERVICE["spec"]["ports"][:1]), "spec.ports"),
        (changed(SERVICE, publishNotReadyAddresses=False), "spec.publishNotReadyAddresses"),
        (changed(SERVICE, type="ExternalName"), "spec.type"),
        (changed(SERVICE, clusterIP="10.96.0.7"), "spec.clusterIP"),
    ],
)
def test_a_field_that_dtjob_sets_and_that_differs_is_drift(there: Manifest, field: str):
    wanted = SERVICE if there["kind"] == "Service" else POLICY
    for seen in (there, kept(there)):
        assert drift.drifted(wanted, seen) == field
    repaired = drift.repaired(wanted, there)
    assert drift.drifted(wanted, repaired) == ""
    assert repaired["metadata"]["resourceVersion"] == there["metadata"]["resourceVersion"]


def test_an_empty_list_of_peers_equals_a_missing_one():
    """An API server drops an empty list; what it means, everybody, is the same."""
    rule = {"ports": [{"port": 2223}]}
    wanted = {**POLICY, "spec": {**POLICY["spec"], "ingress": [{**rule, "from": []}]}}
    assert drift.drifted(wanted, changed(POLICY, ingress=[rule])) == ""
    assert drift.drifted(wanted, changed(POLICY, ingress=[{**rule, "from": [{"podSelector": {}}]}])) == "spec.ingress"


def test_a_repair_restores_labels_of_dtjob_beside_the_others():
    there = as_stored(SERVICE)
    del there["metadata"]["labels"][labels.JOB_NAME]
    there["metadata"]["labels"]["team"] = "vision"
    there["spec"]["sessionAffinity"] = "ClientIP"
    assert drift.drifted(SERVICE, there) == f"metadata.labels[{labels.JOB_NAME}]"
    repaired = drift.repaired(SERVICE, there)
    assert labels.of(repaired) == {**labels.of(SERVICE), "team": "vision"}
    assert repaired["spec"]["sessionAffinity"] == "ClientIP"
