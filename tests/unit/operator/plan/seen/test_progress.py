# SPDX-License-Identifier: Apache-2.0
"""Progress: what of a supervisor's report reaches the status."""

import json

from dtjob import times
from dtjob.api.job import Job
from dtjob.api.status.progress import EvaluationResult, Metric
from dtjob.api.status.status import Status
from dtjob.objects.manifest import Manifest
from dtjob.objects.shared import shared_objects
from dtjob.plan.plan import plan
from dtjob.plan.seen.children import Children
from dtjob.plan.seen.progress import latest_reports, only_progress_differs, with_progress
from tests.unit.operator import builders
from tests.unit.operator.builders import NOW, at

JOB = builders.job(evaluator=True)
NONE = Status()
SAVED = {"step": 100, "time": "2026-11-21T10:00:02.123Z"}
REPORT = {
    "step": 120, "totalSteps": 460, "loss": 0.31, "stepsPerSecond": 41.0, "etaSeconds": 8.3,
    "examplesPerSecond": 2624.0, "inputWait": 0.617,
}  # fmt: skip


def test_a_report_becomes_progress():
    report = {**REPORT, "epoch": 3, "metrics": {"accuracy": 0.93}, "resume": "exact"}
    assert with_progress(JOB, NONE, {"chief-0": report}, NOW).to_json()["progress"] == {
        "step": 120,
        "totalSteps": 460,
        "epoch": 3,
        "percentage": 26,
        "estimatedRemainingSeconds": 8,
        "stepsPerSecond": "41.0",
        "examplesPerSecond": "2624.0",
        "inputWaitPercentage": 62,
        "metrics": [{"name": "loss", "value": "0.31"}, {"name": "accuracy", "value": "0.93"}],
        "resume": "exact",
        "lastUpdatedTime": "2026-11-21T10:00:00Z",
    }


def test_the_chief_task_of_a_job_without_chief_is_worker_0():
    job = builders.job(chief=False)
    assert with_progress(job, NONE, {"worker-0": REPORT}, NOW).step == 120
    assert with_progress(job, NONE, {"worker-1": REPORT}, NOW) == NONE


def test_the_time_moves_only_with_the_rest():
    report = {**REPORT, "loss": 1 / 3, "checkpoint": SAVED}
    old = with_progress(JOB, NONE, {"chief-0": report}, at(0.7))
    assert with_progress(JOB, Status.read(old.to_json()), {"chief-0": report}, at(60)) == old
    newer = with_progress(JOB, old, {"chief-0": {**report, "step": 121}}, at(60))
    assert newer.progress.last_updated_time == at(60)
    assert only_progress_differs(newer, old)
    assert not only_progress_differs(newer.but(ready="1/4"), old)


def test_checkpoints_never_go_back_and_silence_changes_nothing():
    old = with_progress(JOB, NONE, {"chief-0": {"checkpoint": SAVED}}, NOW)
    assert old.checkpoint_step == 100
    assert with_progress(JOB, old, {"chief-0": {"checkpoint": {**SAVED, "step": 50}}}, NOW) == old
    assert with_progress(JOB, old, {}, NOW) == old
    assert NONE.checkpoint_step == -1


def test_the_last_report_of_a_finished_task_counts():
    job = builders.job()
    left = json.dumps({"step": 460, "model": "/checkpoints/model.keras"})
    views = builders.views(job, builders.pod(job, "chief-0", builders.ended(0, message=left)))
    assert latest_reports(views, {"chief-0": REPORT})["chief-0"] == {
        **REPORT, "step": 460, "model": "/checkpoints/model.keras",
    }  # fmt: skip
    for message in ("{half", "Training has ended", ""):
        views = builders.views(job, builders.pod(job, "chief-0", builders.ended(0, message=message)))
        assert latest_reports(views, {}) == {}


def test_the_termination_message_of_an_image_without_supervisor_is_no_report():
    job = builders.job("Default", program=False)
    message = json.dumps({"step": 460, "totalSteps": 460, "model": "/m.keras", "checkpoint": {"step": 460}})
    chief = builders.pod(job, "chief-0", builders.ended(0, message=message))
    ended = plan(job, Children((chief,)), at(9)).status
    assert ended["phase"] == "Succeeded"
    assert "progress" not in ended
    assert "checkpoint" not in ended


def test_the_last_words_of_a_finished_chief_stay_when_its_pod_goes():
    """What was polled before its end is older, and is still remembered."""
    job = builders.job("Default")
    polled = {"attempt": 0, "step": 621, "totalSteps": 690, "metrics": {"loss": 0.02}}
    last = {**polled, "step": 690, "metrics": {"loss": 0.01}, "model": "/checkpoints/model.keras"}
    chief = builders.pod(job, "chief-0", builders.ended(0, message=json.dumps(last)))
    ended = plan(job, Children((chief,), {"chief-0": polled}), at(9)).status
    assert ended["phase"] == "Succeeded"
    gone = plan(builders.with_status(job, ended), Children((), {"chief-0": polled}), at(60)).status or ended
    assert gone["progress"] == ended["progress"]
    assert (gone["progress"]["step"], gone["progress"]["model"]) == (690, "/checkpoints/model.keras")


def test_the_termination_message_of_a_failed_task_is_no_report():
    views = builders.views(JOB, builders.pod(JOB, "chief-0", builders.ended(1, message=json.dumps({"step": 460}))))
    assert latest_reports(views, {"chief-0": REPORT}) == {"chief-0": REPORT}


def test_a_report_of_an_earlier_attempt_does_not_count():
    job = builders.job(status=builders.at_attempts({"chief-0": 1}))
    views = builders.views(job)
    old, now, unsaid = {"attempt": 0, "step": 9}, {"attempt": 1, "step": 3}, {"step": 4}
    assert latest_reports(views, {"chief-0": old, "worker-1": old}) == {"worker-1": old}
    for report in (now, unsaid):
        assert latest_reports(views, {"chief-0": report}) == {"chief-0": report}


def test_only_the_evaluators_report_gives_the_evaluation():
    evaluation = {"step": 100, "metrics": {"accuracy": 0.9}}
    made = with_progress(JOB, NONE, {"evaluator-0": {"evaluation": evaluation, "step": 3}}, NOW)
    result = EvaluationResult(step=100, metrics=(Metric(name="accuracy", value="0.9"),))
    assert (made.evaluation, made.progress, made.checkpoint) == (result, None, None)
    assert with_progress(JOB, NONE, {"chief-0": {"evaluation": evaluation}}, NOW) == NONE


def written_at(seconds: float) -> tuple[Job, tuple[Manifest, ...]]:
    """A job whose progress was written then, and its objects."""
    job = builders.job()
    objects = (*builders.all_pods(job).values(), *(builders.stored(one) for one in shared_objects(job)))
    status = plan(job, Children(objects, {"chief-0": REPORT}), at(seconds)).status
    return builders.with_status(job, status or {}), objects


def test_progress_is_written_after_the_clock_was_set_back():
    job, objects = written_at(7200)
    for seconds, step in ((30, 200), (60, 300)):
        made = plan(job, Children(objects, {"chief-0": {**REPORT, "step": step}}), at(seconds))
        progress = made.status["progress"]
        assert (progress["step"], progress["lastUpdatedTime"]) == (step, times.rfc3339(at(seconds)))
        job = builders.with_status(job, made.status)


def test_progress_alone_is_written_every_ten_seconds():
    job, objects = written_at(0)
    later = Children(objects, {"chief-0": {**REPORT, "step": 200}})
    early = plan(job, later, at(9))
    assert (early.status, early.look_again_at) == (None, at(10))
    due = plan(job, later, at(10))
    assert due.status["progress"]["step"] == 200
