"""The class that a queued job names."""

from __future__ import annotations

from dtjob.objects import kueue
from tests.unit.operator.queued import QUEUE, Story

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


def test_another_class_may_be_named_at_any_time() -> None:
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
