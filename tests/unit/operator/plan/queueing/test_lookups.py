# SPDX-License-Identifier: Apache-2.0
"""The class that a queued job names."""

from __future__ import annotations

from typing import Any

import pytest

from dtjob.objects import kueue
from dtjob.objects.manifest import Manifest
from tests.unit.operator.builders import at
from tests.unit.operator.queued import QUEUE, SPOT, Story

HIGH = {**QUEUE, kueue.PRIORITY_CLASS: "high"}


def a_class(value: int, kind: str = "WorkloadPriorityClass") -> dict[str, object]:
    return {"kind": kind, "metadata": {"name": "any"}, "value": value}


def spec_of(story: Story) -> dict[str, object]:
    assert story.workload is not None
    spec: dict[str, object] = story.workload["spec"]
    return {name: spec.get(name) for name in ("priorityClassRef", "priority")}


def test_a_class_that_is_not_there_is_waited_for() -> None:
    story = Story(HIGH)
    story.settle()
    assert story.stands == ("Suspended", "NoPriorityClass")
    assert story.job.status["message"] == (
        "label kueue.x-k8s.io/priority-class: there is no WorkloadPriorityClass high; "
        "the job is queued as soon as there is"
    )
    story.there["WorkloadPriorityClass", "high"] = a_class(1000)
    story.settle()
    assert spec_of(story)["priority"] == 1000


def test_the_class_of_the_pods_counts_where_there_is_no_label() -> None:
    story = Story(scheduling={"priorityClassName": "urgent"})
    story.there["PriorityClass", "urgent"] = a_class(7, "PriorityClass")
    story.settle()
    ref = {"group": "scheduling.k8s.io", "kind": "PriorityClass", "name": "urgent"}
    assert spec_of(story) == {"priorityClassRef": ref, "priority": 7}


def test_the_priority_class_may_be_changed_at_any_time() -> None:
    story = Story(HIGH)
    story.there |= {("WorkloadPriorityClass", name): a_class(value) for name, value in (("high", 10), ("low", 1))}
    story.settle()
    story.label(**{**QUEUE, kueue.PRIORITY_CLASS: "low"})
    story.settle()
    assert story.workload is not None
    assert story.workload["spec"]["priorityClassRef"]["name"] == "low"
    story.admit()
    story.run()
    story.label(**HIGH)
    story.settle()
    assert story.workload["spec"]["priorityClassRef"]["name"] == "high"
    story.label(**{**QUEUE, kueue.PRIORITY_CLASS: "gone"})
    story.settle()
    assert story.workload["spec"]["priorityClassRef"]["name"] == "high"


def test_a_first_class_is_not_given_to_who_holds_quota() -> None:
    story = Story()
    story.there["WorkloadPriorityClass", "high"] = a_class(10)
    story.settle()
    story.admit()
    story.run()
    story.label(**HIGH)
    story.settle()
    assert spec_of(story)["priorityClassRef"] is None


RACK = "example.com/rack"


def queued(topology: str | None = "racks", how: str = "required", **spec: Any) -> Story:
    """A job that is to be near itself, in a queue with a flavour of this Topology."""
    story = Story(scheduling={"topology": {how: RACK}}, **spec)
    flavours = [{"name": "default"}, {"name": "spot"}]
    story.there |= {
        ("LocalQueue", "team-a"): {"spec": {"clusterQueue": "research"}},
        ("ClusterQueue", "research"): {"spec": {"resourceGroups": [{"flavors": flavours}]}},
        ("ResourceFlavor", "spot"): {**SPOT, "spec": {**SPOT["spec"], "topologyName": topology}},
    }
    story.settle()
    return story


def requests(story: Story) -> dict[str, Manifest | None]:
    assert story.workload is not None
    return {one["name"]: one.get("topologyRequest") for one in story.workload["spec"]["podSets"]}


def place(story: Story) -> None:
    """Kueue admits the job, and gives each pod a place."""
    story.admit(at(10), {"cpu": "spot"})
    assert story.workload is not None
    admission = story.workload["status"]["admission"]
    levels = {"levels": [RACK]}
    assigned = [{**one, "topologyAssignment": levels} for one in admission["podSetAssignments"]]
    story.say(admission={**admission, "podSetAssignments": assigned})
    story.settle(at(11))


@pytest.mark.parametrize("how", ["required", "preferred"])
def test_kueue_places_the_chief_and_the_workers_as_one_group(how: str) -> None:
    story = queued(how=how, evaluator=True)
    request = {how: RACK, "podSetGroupName": "training"}
    assert requests(story) == {"chief": request, "worker": request, "evaluator": None}


def test_more_sets_are_each_placed_by_themselves() -> None:
    story = queued(
        strategy="ParameterServer", replicaSpecs={"chief": {}, "ps": {"replicas": 2}, "worker": {"replicas": 2}}
    )
    assert requests(story) == {role: {"required": RACK} for role in ("chief", "ps", "worker")}


@pytest.mark.parametrize("missing", [None, "ResourceFlavor", "ClusterQueue", "LocalQueue"])
def test_without_a_topology_kueue_is_asked_for_none(missing: str | None) -> None:
    story = Story(scheduling={"topology": {"required": RACK}})
    if missing:
        other = queued().there
        story.there = {key: one for key, one in other.items() if key[0] != missing}
    story.settle()
    assert set(requests(story).values()) == {None}
    story.admit()
    story.settle(at(10))
    assert len(story.pods) == 3
    assert all("podAffinity" in one["spec"]["affinity"] for one in story.pods)


def test_placed_pods_wait_for_their_place_and_have_no_affinity() -> None:
    story = queued()
    place(story)
    assert len(story.pods) == 3
    for pod in story.pods:
        assert pod["spec"]["schedulingGates"] == [{"name": kueue.TOPOLOGY_GATE}]
        assert pod["metadata"]["annotations"][f"{kueue.GROUP}/podset-required-topology"] == RACK
        assert "affinity" not in pod["spec"]


def test_pods_that_ask_for_nothing_are_placed_anywhere() -> None:
    story = Story()
    story.settle()
    place(story)
    for pod in story.pods:
        assert pod["spec"]["schedulingGates"] == [{"name": kueue.TOPOLOGY_GATE}]
        assert pod["metadata"]["annotations"][f"{kueue.GROUP}/podset-unconstrained-topology"] == "true"


def test_a_template_keeps_its_own_affinity() -> None:
    own = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "cache"}}}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    template = {"spec": {"affinity": {"podAffinity": {required: [own]}, "nodeAffinity": {}}}}
    story = queued(replicaSpecs={"chief": {"template": template}, "worker": {"replicas": 2}})
    place(story)
    chief = next(one for one in story.pods if "chief" in one["metadata"]["name"])
    assert chief["spec"]["affinity"] == {"nodeAffinity": {}, "podAffinity": {required: [own]}}
