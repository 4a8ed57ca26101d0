"""`scheduling.topology` of a queued job: asked of Kueue where its queue knows a topology, else by affinity."""

from __future__ import annotations

from typing import Any

import pytest

from dtjob.objects import kueue
from dtjob.objects.manifest import Manifest
from tests.unit.operator.builders import at
from tests.unit.operator.queued import SPOT, Story

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
def test_kueue_places_chief_and_workers_as_one(how: str) -> None:
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
