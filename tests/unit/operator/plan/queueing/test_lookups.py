# SPDX-License-Identifier: Apache-2.0
"""The class that a queued job names."""

import copy
from dataclasses import replace
from typing import Any

import pytest

from dtjob.objects import kueue, labels
from dtjob.objects.manifest import Manifest
from dtjob.plan.actions import PatchWorkload, Plan
from dtjob.plan.plan import plan
from dtjob.plan.seen.workload import Kueue
from tests.unit.operator import builders
from tests.unit.operator.builders import NOW, at
from tests.unit.operator.queued import BY_ANOTHER, QUEUE, SPOT, Story, kinds, prebuilt, running

HIGH = {**QUEUE, kueue.PRIORITY_CLASS: "high"}


def a_class(value: int, kind: str = "WorkloadPriorityClass") -> dict[str, object]:
    return {"kind": kind, "metadata": {"name": "any"}, "value": value}


def spec_of(story: Story) -> dict[str, object]:
    spec: dict[str, object] = story.workload["spec"]
    return {name: spec.get(name) for name in ("priorityClassRef", "priority")}


def test_a_class_that_is_not_there_is_waited_for() -> None:
    story = Story(HIGH)
    story.settle()
    assert story.stands == ("Suspended", "NoPriorityClass")
    story.there["WorkloadPriorityClass", "high"] = a_class(1000)
    story.settle()
    assert spec_of(story)["priority"] == 1000


def test_the_priority_class_may_be_changed_at_any_time() -> None:
    story = Story(HIGH)
    story.there |= {("WorkloadPriorityClass", name): a_class(value) for name, value in (("high", 10), ("low", 1))}
    story.settle()
    story.label(**{**QUEUE, kueue.PRIORITY_CLASS: "low"})
    story.settle()
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
    return {one["name"]: one.get("topologyRequest") for one in story.workload["spec"]["podSets"]}


def place(story: Story) -> None:
    """Kueue admits the job, and gives each pod a place."""
    story.admit(at(10), {"cpu": "spot"}, topologyAssignment={"levels": [RACK]})
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


@pytest.mark.parametrize(("asked", "level"), [(True, "required"), (False, "unconstrained")])
def test_placed_pods_wait_for_their_place_and_have_no_affinity(asked: bool, level: str) -> None:
    """Pods that ask for nothing are placed anywhere."""
    story = queued() if asked else Story()
    story.settle()
    place(story)
    assert len(story.pods) == 3
    for pod in story.pods:
        assert pod["spec"]["schedulingGates"] == [{"name": kueue.TOPOLOGY_GATE}]
        assert pod["metadata"]["annotations"][f"{kueue.GROUP}/podset-{level}-topology"] == (RACK if asked else "true")
        assert not asked or "affinity" not in pod["spec"]


def test_a_template_keeps_its_own_affinity() -> None:
    own = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "cache"}}}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    template = {"spec": {"affinity": {"podAffinity": {required: [own]}, "nodeAffinity": {}}}}
    story = queued(replicaSpecs={"chief": {"template": template}, "worker": {"replicas": 2}})
    place(story)
    chief = next(one for one in story.pods if "chief" in one["metadata"]["name"])
    assert chief["spec"]["affinity"] == {"nodeAffinity": {}, "podAffinity": {required: [own]}}


def hide(story: Story, workload: Manifest | None = None, **metadata: Any) -> Manifest:
    """Its label is taken away, and with it the watch loses it; `metadata` changes too. The Workload as it is."""
    found = copy.deepcopy(workload or story.workload)
    found["metadata"] |= metadata
    found["metadata"]["labels"] = {labels.JOB_UID: builders.JOB_UID}
    found["metadata"]["resourceVersion"] = str(int(found["metadata"]["resourceVersion"]) + 1)
    story.there[kueue.KIND, found["metadata"]["name"]] = found
    story.lose(found["metadata"]["uid"])
    return found


def test_an_unlisted_workload_is_looked_up_first_and_asked_for_again() -> None:
    story = running()
    found = hide(story)
    assert builders.asked(story.job, story.children, at(10)) == ((kueue.KIND, found["metadata"]["name"]),)
    made = story.look(at(10))
    assert (made.actions, made.look_again_at) == ((), at(20))
    assert (made.status, story.stands) == (None, ("Running", "AllTasksRunning"))
    assert (len(story.pods), story.own("Admitted")) == (3, ("True", "ByTest"))


def test_an_unlisted_prebuilt_workload_is_found_again() -> None:
    story = Story({**QUEUE, kueue.PREBUILT: "theirs"})
    story.there[kueue.KIND, "theirs"] = prebuilt()
    story.settle()
    story.admit(at(10))
    story.run(at(11))
    hide(story)
    assert story.look(at(20)).actions == ()
    assert (story.stands[0], len(story.pods)) == ("Running", 3)


@pytest.mark.parametrize("how", ["gone", "going", "another's", "nobody's"])
def test_a_workload_that_is_gone_or_not_the_jobs_stops_the_job(how: str) -> None:
    story = running()
    changes = {"going": {"deletionTimestamp": "2026-11-21T10:00:00Z"}, "another's": {"ownerReferences": BY_ANOTHER}}
    if how == "gone":
        story.lose(story.workload["metadata"]["uid"])
    else:
        hide(story, **changes.get(how, {"ownerReferences": []}))
    made = story.look(at(10))
    assert kinds(made) == ["delete Pod"] * 3
    assert story.stands == ("Suspended", "Queued")
    assert "the job's Workload is gone" in story.job.status["message"]
    assert "workload" not in story.job.status["queue"]


def test_an_unlisted_workload_that_was_evicted_stops_the_job() -> None:
    story = running()
    story.evict()
    hide(story)
    made = story.look(at(10))
    assert kinds(made) == ["delete Pod"] * 3
    assert "evicted by Kueue (Preempted: " in story.job.status["message"]
    story.settle(at(20))
    assert story.said("QuotaReserved") == ("False", "Pending")


def seen_as_before(story: Story, older: Manifest) -> None:
    """An operator that begins has a list in which the Workload is as it was."""
    now = story.workload
    story.there[kueue.KIND, now["metadata"]["name"]] = now
    story.children = replace(story.children, objects=(*(one for one in story.children.objects if one != now), older))


def resumed() -> tuple[Story, Manifest]:
    """A job that runs again after a preemption, and its Workload as it was when the job waited."""
    story = running()
    story.evict()
    story.settle(at(10))
    waits = story.workload
    story.admit(at(20))
    story.run(at(20))
    return story, waits


def test_a_workload_seen_as_before_its_admission_stops_no_job() -> None:
    story, waits = resumed()
    seen_as_before(story, waits)
    assert builders.asked(story.job, story.children, at(30)) == ((kueue.KIND, waits["metadata"]["name"]),)
    assert kinds(story.look(at(30))) == []
    assert (story.stands[0], len(story.pods)) == ("Running", 3)


def test_a_workload_seen_as_before_that_is_evicted_again_stops_the_job() -> None:
    story, waits = resumed()
    story.evict("InactiveWorkload")
    seen_as_before(story, waits)
    assert kinds(story.look(at(30))) == ["delete Pod"] * 3
    assert "evicted by Kueue (InactiveWorkload: " in story.job.status["message"]


def test_a_preempted_job_asks_for_its_workload_once() -> None:
    story = running()
    assert builders.asked(story.job, story.children, at(5)) == ()
    story.evict()
    assert builders.asked(story.job, story.children, at(10)) == ((kueue.KIND, story.workload["metadata"]["name"]),)
    story.look(at(10))
    assert builders.asked(story.job, story.children, at(11)) == ()


def test_the_unlisted_workload_of_a_waiting_job_is_found_again() -> None:
    story = Story()
    story.settle()
    hide(story)
    made = story.look(at(10))
    assert (made.actions, made.status) == ((), None)


def test_the_end_of_a_job_is_written_to_its_unlisted_workload() -> None:
    story = running()
    story.ends("chief", "worker", now=at(20))
    story.look(at(20))
    assert story.stands[0] == "Succeeded"
    hide(story)
    made = story.look(at(21))
    (action,) = (one for one in made.actions if isinstance(one, PatchWorkload))
    assert {one["type"] for one in action.body["status"]["conditions"]} >= {"Finished"}


@pytest.mark.parametrize("gone", [False, True])
def test_an_ended_job_looks_up_its_unlisted_workload_once(gone: bool) -> None:
    story = running()
    story.ends("chief", "worker", now=at(20))
    story.settle(at(20))
    assert story.said("Finished") == ("True", "Succeeded")
    found = hide(story)
    if gone:
        del story.there[kueue.KIND, found["metadata"]["name"]]
    made = story.look(at(30))
    assert made.actions == ()
    assert "workload" not in story.job.status["queue"]
    assert plan(story.job, story.children, at(31)) == Plan()


def scaled() -> Story:
    """A job that runs with two workers, and has asked for four."""
    story = running(replicaSpecs={"chief": {}, "worker": {"replicas": 2}}, elasticPolicy={"minReplicas": 1})
    story.scale(4)
    story.settle(at(10))
    return story


def test_the_unlisted_workload_with_the_quota_is_found_beside_one_that_asks_for_more() -> None:
    story = scaled()
    hide(story, story.workloads[2])
    made = story.look(at(20))
    assert made.actions == ()
    assert (story.stands[0], len(story.pods)) == ("Running", 3)


def test_a_workload_that_was_replaced_is_not_looked_up() -> None:
    story = scaled()
    story.reserve(of=story.workloads[4])
    story.lose(story.workloads[2]["metadata"]["uid"])
    assert builders.asked(story.job, story.children, at(20)) == ()
    assert story.look(at(20)).actions == ()


def test_a_job_that_was_suspended_gives_its_place_up() -> None:
    story = running()
    story.suspend(True)
    assert kinds(story.look(at(10))) == ["delete Pod"] * 3
    found = hide(story)
    assert kinds(story.look(at(20))) == ["delete Workload"]
    del story.there[kueue.KIND, found["metadata"]["name"]]
    story.settle(at(21))
    assert (story.stands, "queue" in story.job.status) == (("Suspended", "JobSuspended"), False)


@pytest.mark.parametrize("state", [Kueue.ABSENT, Kueue.FORBIDDEN, Kueue.UNKNOWN])
def test_no_workload_is_looked_up_without_kueue(state: Kueue) -> None:
    story = running()
    hide(story)
    story.children = replace(story.children, kueue=state)
    assert builders.asked(story.job, story.children, at(10)) == ()


def test_a_job_that_never_had_a_workload_looks_up_none() -> None:
    assert builders.asked(Story().job, Story().children, NOW) == ()
