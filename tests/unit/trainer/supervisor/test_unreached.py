# SPDX-License-Identifier: Apache-2.0
"""Tasks that cannot reach each other are named after half a minute, by a clock that the test turns."""

from dtjob_trainer.contract.task import Task
from dtjob_trainer.supervisor.unreached import MOST_TOLD, SAID_AFTER_SECONDS, Unreached

CLUSTER = {"chief": ["digits-chief-0.digits:2222"], "worker": ["digits-worker-0.digits:2222"]}
LATE = SAID_AFTER_SECONDS
PROBLEM = "gaierror: Name or service not known"


def member(role: str, **unheard: str) -> Unreached:
    task = Task(
        namespace="default", name="digits", uid="uid", role=role, index=0, attempt=0, strategy="MultiWorkerMirrored",
        cluster=CLUSTER, rendezvous="digits-chief-0.digits:2224",
    )  # fmt: skip
    return Unreached(task, lambda seconds: {name.replace("_", "-"): why for name, why in unheard.items()})


def test_a_worker_names_the_chief_once_it_has_failed_for_long() -> None:
    worker = member("worker")
    assert [worker.failed(PROBLEM, now) for now in (0, 1, LATE - 0.1)] == ["", "", ""]
    assert worker.found(LATE - 0.1) == {}
    line = worker.failed(PROBLEM, LATE)
    assert line.startswith(
        f"cannot reach the chief task's supervisor at digits-chief-0.digits:2224 for 30 s: {PROBLEM}; "
    )
    assert "NetworkPolicy" in line
    assert worker.found(LATE) == {"chief-0": PROBLEM}
    assert worker.failed(PROBLEM, LATE + 1) == "", "one line for one outage"


def test_an_answer_ends_an_outage_and_the_next_one_is_reported_again() -> None:
    worker = member("worker")
    worker.failed(PROBLEM, 0)
    assert worker.failed(PROBLEM, LATE)
    assert worker.answered(LATE + 1) == ""
    assert worker.found(LATE + 1) == {}
    worker.failed(PROBLEM, 100)
    assert worker.found(100 + LATE - 1) == {}
    assert worker.failed(PROBLEM, 100 + LATE)


def test_the_chief_names_the_tasks_that_it_has_not_heard() -> None:
    chief = member("chief", worker_0="", worker_1="its name does not resolve")
    chief.waits(0)
    assert chief.answered(LATE - 0.1) == ""
    line = chief.answered(LATE)
    assert line.startswith("waiting for 30 s without a report of worker-0, worker-1 (its name does not resolve); ")
    assert chief.found(LATE) == {"worker-0": "", "worker-1": "its name does not resolve"}
    assert chief.answered(LATE + 1) == ""


def test_the_time_of_a_wait_begins_with_the_training_process() -> None:
    chief = member("chief", worker_0="")
    assert chief.found(1000) == {}
    chief.waits(0)
    chief.goes()
    assert chief.found(1000) == {}
    chief.waits(1000)
    assert chief.found(1000 + LATE - 1) == {}
    assert chief.found(1000 + LATE) == {"worker-0": ""}


def test_only_the_first_of_many_unreached_tasks_are_named() -> None:
    chief = member("chief", **{f"worker_{number}": "" for number in range(20)})
    chief.waits(0)
    assert list(chief.found(LATE)) == [f"worker-{number}" for number in range(MOST_TOLD)]
