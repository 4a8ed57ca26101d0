# SPDX-License-Identifier: Apache-2.0
"""Pods near each other."""

from typing import Any

from dtjob.objects import labels
from dtjob.objects.pod.placement import PREFERRED, REQUIRED, brought_near, topology_request
from dtjob.objects.pod.pod import pod
from tests.unit.operator.builders import JOB_UID, job, task

RACK = "topology.kubernetes.io/rack"


def near(kind: str, **more: Any) -> Any:
    return job(evaluator=True, scheduling={"topology": {kind: RACK}}, **more)


def test_required_is_an_affinity_to_the_jobs_other_pods():
    affinity = pod(near("required"), task("worker-1"), 0)["spec"]["affinity"]
    (term,) = affinity["podAffinity"][REQUIRED]
    assert term["topologyKey"] == RACK
    assert term["labelSelector"]["matchLabels"] == {labels.JOB_UID: JOB_UID}
    # Itself among them, or the first pod would wait for others for ever.
    (expression,) = term["labelSelector"]["matchExpressions"]
    assert expression == {"key": labels.ROLE, "operator": "NotIn", "values": ["evaluator"]}


def test_a_preferred_topology_is_an_affinity_of_the_highest_weight():
    (weighted,) = pod(near("preferred"), task("chief-0"), 0)["spec"]["affinity"]["podAffinity"][PREFERRED]
    assert (weighted["weight"], weighted["podAffinityTerm"]["topologyKey"]) == (100, RACK)


def test_a_templates_own_affinity_stays():
    theirs = {"nodeAffinity": {"a": 1}, "podAffinity": {REQUIRED: [{"topologyKey": "zone"}], PREFERRED: [{}]}}
    made = brought_near(near("required"), task("worker-0"), theirs)
    assert made["nodeAffinity"] == {"a": 1}
    assert [one["topologyKey"] for one in made["podAffinity"][REQUIRED]] == [RACK, "zone"]
    assert made["podAffinity"][PREFERRED] == [{}]


def test_the_evaluator_goes_anywhere():
    assert "affinity" not in pod(near("required"), task("evaluator-0"), 0)["spec"]
    assert "affinity" not in pod(job(), task("worker-0"), 0)["spec"]


def test_the_topology_request_to_kueue_has_the_jobs_topology():
    assert topology_request(near("required")) == {"required": RACK}
    assert topology_request(near("preferred")) == {"preferred": RACK}
    assert topology_request(job()) == {}
