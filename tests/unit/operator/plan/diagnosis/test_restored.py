# SPDX-License-Identifier: Apache-2.0
"""From which step training really went on: noted and told once for each start of the chief's training process."""

import pytest

from dtjob.api.job import Job
from dtjob.plan.plan import Plan, plan
from dtjob.plan.seen.children import Children
from tests.unit.operator import builders

SAVING = builders.job(checkpoint={"storage": {"volume": {"persistentVolumeClaim": {"claimName": "a"}}}})
FREE = builders.job()
SAVED = {"attempt": 0, "incarnation": 0, "step": 44, "restoredStep": 0, "checkpoint": {"step": 40}}


def told(made: Plan) -> list[str]:
    return [f"{one.type} {one.reason}" for one in made.events if one.reason in ("Resumed", "StartedOver")]


@pytest.mark.parametrize("job", [SAVING, FREE])
def test_a_first_start_from_nothing_is_no_news(job: Job):
    after, made = builders.chief_says(job, {"attempt": 0, "incarnation": 0, "step": 0, "restoredStep": 0})
    assert told(made) == []
    assert "restored" not in after.status


def test_a_new_job_that_finds_a_checkpoint_says_so():
    _, made = builders.chief_says(SAVING, {**SAVED, "restoredStep": 40})
    assert told(made) == ["Normal Resumed"]


@pytest.mark.parametrize(
    ("again", "wanted", "checkpoint"),
    [
        ({"restoredStep": 40, "checkpoint": {"step": 40}}, "Normal Resumed", 40),
        ({"restoredStep": 40, "checkpoint": {"step": 60}}, "Normal Resumed", 60),
        ({"restoredStep": 20, "checkpoint": {"step": 20}}, "Warning Resumed", 20),
        ({"restoredStep": 0}, "Warning StartedOver", None),
    ],
)
def test_a_restored_step_has_one_event_and_is_the_newest_checkpoint(again, wanted, checkpoint):
    job, _ = builders.chief_says(SAVING, SAVED)
    report = {"attempt": 0, "incarnation": 1, "step": again["restoredStep"], **again}
    job, made = builders.chief_says(job, report, 1)  # sooner than progress alone is written
    assert told(made) == [wanted]
    assert job.status.get("checkpoint", {}).get("step") == checkpoint
    restored = {"step": again["restoredStep"], "time": "2026-11-21T10:00:01Z"}
    assert (job.status["restored"], job.status["internal"]["chiefStart"]) == (restored, {"incarnation": 1})
    job, made = builders.chief_says(job, {**report, "step": 70}, 30)
    assert told(made) == []
    assert job.status["restored"] == restored


def test_there_is_no_event_before_the_chief_reports_a_restored_step():
    job, _ = builders.chief_says(SAVING, SAVED)
    waiting = {"attempt": 0, "incarnation": 1, "step": 44, "checkpoint": {"step": 40}, "state": "waiting"}
    job, made = builders.chief_says(job, waiting, 1)
    assert told(made) == []
    assert job.status["checkpoint"] == {"step": 40}


@pytest.mark.parametrize("job", [SAVING, FREE])
def test_a_start_after_others_that_never_came_to_a_step_is_no_news(job: Job):
    """As of workers that there was no room for: the group that is made in their place loses nothing."""
    job, _ = builders.chief_says(job, {"attempt": 0, "incarnation": 0, "state": "waiting"})
    job, made = builders.chief_says(job, {"attempt": 0, "incarnation": 1, "step": 0, "restoredStep": 0}, 1)
    assert told(made) == []
    assert job.status["internal"]["chiefStart"] == {"incarnation": 1}


def test_a_run_that_ends_before_the_next_look_has_the_event_resumed_too():
    job, _ = builders.chief_says(SAVING, SAVED)
    pods = builders.all_pods(job)
    left = '{"attempt": 0, "incarnation": 1, "restoredStep": 40, "step": 80, "checkpoint": {"step": 80}}'
    pods["chief-0"]["status"] = builders.ended(0, message=left)
    made = plan(job, Children(tuple(pods.values()), {"chief-0": SAVED}), builders.at(9))
    assert [one.reason for one in made.events] == ["Resumed", "Succeeded"]


def test_a_start_that_the_operator_has_forgotten_is_no_news_again():
    """What was saved since is no loss."""
    job, _ = builders.chief_says(SAVING, {**SAVED, "restoredStep": 40})
    later = {**SAVED, "restoredStep": 40, "step": 95, "checkpoint": {"step": 90}}
    job, _ = builders.chief_says(job, later, 30)
    job, made = builders.chief_says(builders.forgotten(job), later, 60)
    assert (told(made), job.status["checkpoint"]) == ([], {"step": 90})
    _, made = builders.chief_says(job, {**later, "incarnation": 1, "restoredStep": 90}, 61)
    assert told(made) == ["Normal Resumed"]
