# SPDX-License-Identifier: Apache-2.0
"""A status in words has what one asks first."""

from dtjob.client.verbs.words import (
    FASTER_PIPELINE,
    MORE_WORKERS,
    MUCH_WAITING,
    since,
    status_lines,
    story_lines,
    summary,
)
from tests.unit.operator.client.verbs.jobs import NOW, RUNNING, job


def facts(**status) -> dict[str, str]:
    return {line[2:16].strip(): line[17:] for line in list(status_lines(job(**status), NOW))[1:]}


def test_everything_that_is_known_has_a_line() -> None:
    assert next(iter(status_lines(job(**RUNNING), NOW))) == "digits: Running (AllTasksRunning): all tasks run"
    assert facts(**RUNNING) == {
        "strategy": "MultiWorkerMirrored",
        "tasks": "3/3 run or have finished",
        "step": "251 of 690, 36 %, 9.5 steps/s, about 46s left",
        "metrics": "loss 0.5",
        "checkpoint": "step 200, 1m ago, in claim data",
        "evaluation": "step 200: accuracy 0.9; best at step 100 with 1",
        "restarts": "2 (Error 2)",
        "last failure": "worker-1, exit code 1, pod digits-worker-1-0, node node-2, 1m ago: ValueError: no",
        "age": "2h",
    }


def test_a_job_that_waits_for_its_data_is_told_what_helps() -> None:
    progress = {"step": 1, "examplesPerSecond": "608"}
    for percentage, roles, expected in (
        (None, ["chief"], "608 examples/s"),
        (MUCH_WAITING - 1, ["chief"], f"608 examples/s, steps wait {MUCH_WAITING - 1} % of the time for data"),
        (62, ["chief"], f"608 examples/s, steps wait 62 % of the time for data: {FASTER_PIPELINE}"),
        (62, ["chief", "data"], f"608 examples/s, steps wait 62 % of the time for data: {MORE_WORKERS}"),
    ):
        told = progress | ({} if percentage is None else {"inputWaitPercentage": percentage})
        shown = job(phase="Running", progress=told)
        shown["spec"]["replicaSpecs"] = {role: {} for role in roles}
        assert f"  input         {expected}".split() in [line.split() for line in status_lines(shown, NOW)]
    assert "input" not in facts(phase="Failed", progress=told)


def test_the_state_of_data_workers_is_told_while_the_job_runs() -> None:
    counts = {"chief": {"replicas": 1, "active": 1}, "data": {"replicas": 3, "active": 2, "pending": 1}}
    assert facts(phase="Running", replicaStatuses=counts)["data workers"] == "2 of 3 run"
    assert "data workers" not in facts(phase="Succeeded", replicaStatuses=counts)


def test_words_of_a_program_do_nothing_to_the_terminal_of_who_reads_them() -> None:
    evil = "a\x1b]52;c;aGk=\x07b\x1b[2J\x9b1mc\x08"
    failure = {"message": evil, "logTail": f"x\n{evil}"}
    incident = {"number": 1, "time": "2026-11-23T10:10:00Z", "task": "chief-0", "reason": "Error", "message": evil}
    shown = job(phase="Failed", message=f"Zürich {evil}", lastFailure=failure, incidents=[incident])
    said = "\n".join(status_lines(shown, NOW))
    assert not set(said) & set("\x1b\x07\x08\x9b")
    assert "Zürich abc" in said
    assert "\x1b" not in summary(job(phase="Failed", message=evil))


INCIDENTS = [
    {
        "number": 12,
        "time": "2026-11-23T10:10:00Z",
        "task": "worker-1",
        "reason": "Signal",
        "message": "was killed (SIGKILL)",
        "fromStep": 118,
        "toStep": 100,
        "secondsLost": 95,
    },
    {"number": 13, "time": "2026-11-23T10:20:00Z", "task": "ps-0", "reason": "Disruption", "message": "was evicted"},
    {"number": 14, "time": "2026-11-23T10:30:00Z", "task": "chief-0", "reason": "Error", "fromStep": 300},
]


def test_the_story_has_a_line_for_each_incident_between_start_and_end() -> None:
    ended = {"phase": "Failed", "reason": "MaxRestartsExceeded", "completionTime": "2026-11-23T10:31:00Z"}
    assert list(story_lines({"startTime": "2026-11-23T10:00:00Z", "incidents": INCIDENTS, **ended})) == [
        "  story (UTC)",
        "    2026-11-23 10:00:00  started",
        "                         11 earlier restarts not kept",
        "    2026-11-23 10:10:00  Signal: worker-1 was killed (SIGKILL); step 118 -> 100; 1m35s lost",
        "    2026-11-23 10:20:00  Disruption: ps-0 was evicted",
        "    2026-11-23 10:30:00  Error: chief-0; at step 300",
        "    2026-11-23 10:31:00  Failed (MaxRestartsExceeded)",
    ]
    assert list(story_lines({"startTime": "2026-11-23T10:00:00Z", **ended})) == []


def test_the_summary_of_a_waiting_job_has_its_message() -> None:
    waiting = job(phase="Pending", reason="WaitingForPods", message="0/1 nodes are available")
    assert summary(waiting) == "Pending (WaitingForPods): 0/1 nodes are available"


def test_a_job_without_a_status_names_the_operator() -> None:
    assert "the operator has not written a status" in summary(job())


def test_speed_and_time_left_are_of_a_job_that_runs() -> None:
    assert facts(**{**RUNNING, "phase": "Succeeded"})["step"] == "251 of 690, 36 %"


def test_a_time_that_cannot_be_read_is_left_out() -> None:
    assert (since("yesterday", NOW), since(None, NOW)) == ("", "")
