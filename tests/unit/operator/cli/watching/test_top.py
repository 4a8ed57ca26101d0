# SPDX-License-Identifier: Apache-2.0
"""The view of a job of a cluster, and its lines where there is no terminal."""

import io
import threading

import pytest

from dtjob.cli.watching import top as showing
from dtjob.cli.watching.top import top, view
from dtjob.client.cluster import Cluster
from dtjob.client.verbs.reports import MOST_TASKS
from tests.unit.operator.client.api_server import ApiServer, Fault
from tests.unit.operator.client.verbs.jobs import JOBS, NOW, PODS, RUNNING, job, pod


def stored(version: str, **status: object) -> dict[str, object]:
    found = job(**status)
    found["metadata"]["resourceVersion"] = version
    return found


def test_the_view_has_the_status_and_a_line_for_each_task() -> None:
    report = {"attempt": 2, "state": "training", "step": 251, "stepsPerSecond": 9.4712, "loss": 0.512345}
    pods = [pod("worker-1", 2), pod("worker-1", 1), pod("chief-0")]
    shown = list(view(job(**RUNNING), pods, {"worker-1": report}, now=NOW))
    assert shown[-3:] == [
        "TASK       STATE      STEP   STEPS/S   LOSS     ATTEMPT   NODE     AGE",
        "chief-0    running                              0         node-1   1m",
        "worker-1   training   251    9.47      0.5123   2         node-1   1m",
    ]


def test_a_task_has_the_numbers_of_its_own_pod_alone_and_only_while_it_runs() -> None:
    report = {"attempt": 1, "state": "training", "step": 251}
    ended = pod("worker-1", 1, {"terminated": {"exitCode": 1}})
    for found in (pod("worker-1", 2), ended):
        assert "251" not in list(view(job(), [found], {"worker-1": report}, now=NOW))[-1]


def test_values_that_are_no_numbers_are_not_shown() -> None:
    for value in ("7", True, None, [7], {"7": 7}):
        report = {"attempt": 0, "step": value, "stepsPerSecond": value, "loss": value}
        shown = list(view(job(), [pod("worker-0")], {"worker-0": report}, now=NOW))[-1]
        assert shown.split() == ["worker-0", "running", "0", "node-1", "1m"]


def test_the_view_says_why_a_task_has_no_step() -> None:
    assert list(view(job(), [pod("worker-0")], {}, "it is forbidden", NOW))[-1] == (
        "a task could not be asked for its step: it is forbidden"
    )


def test_many_tasks_are_cut() -> None:
    shown = list(view(job(**RUNNING), [pod(f"worker-{number}") for number in range(MOST_TASKS + 3)], {}, now=NOW))
    assert shown[-1] == "… 3 more"


def test_without_a_terminal_each_change_is_a_line(server: ApiServer, cluster: Cluster) -> None:
    server.answer(f"GET {JOBS}/digits", stored("1", **RUNNING))
    ended = stored("3", phase="Succeeded", reason="Completed", message="done")
    same = {"type": "MODIFIED", "object": stored("2", **RUNNING)}
    server.answer(f"WATCH {JOBS}", [same, {"type": "MODIFIED", "object": ended}])
    out = io.StringIO()
    assert top(cluster, "digits", out) == 0
    assert out.getvalue().splitlines() == [
        "digits: Running (AllTasksRunning): all tasks run, step 251/690, loss 0.5",
        "digits: Succeeded (Completed): done",
    ]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_shows_the_job_to_its_end_also_through_an_outage(
    server: ApiServer, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(showing, "LOOK_SECONDS", 0.0)
    ended = stored("3", phase="Succeeded", reason="Completed", message="done")
    server.answer(f"GET {JOBS}/digits", stored("1", **RUNNING), Fault(503, "0"), ended)
    server.answer(f"GET {PODS}", {"items": [pod("worker-1", state={"waiting": {}})], "metadata": {}})
    out = Terminal()
    assert top(cluster, "digits", out) == 0
    assert "worker-1" in out.getvalue()
    assert "digits: Succeeded (Completed): done" in out.getvalue()
    server.answer(f"GET {JOBS}/digits", stored("1", **RUNNING), Fault(404))
    assert top(cluster, "digits", Terminal()) == 1


@pytest.mark.timeout(20)
def test_a_task_that_does_not_answer_does_not_hold_the_view(
    server: ApiServer, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    silent = threading.Event()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(showing, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(showing, "read_reports", lambda *_: silent.wait(60) and ({}, "it is late"))
    server.answer(f"GET {JOBS}/digits", stored("1", **RUNNING), stored("2", phase="Succeeded"))
    server.answer(f"GET {PODS}", {"items": [pod("worker-1")], "metadata": {}})
    assert top(cluster, "digits", Terminal()) == 0
    silent.set()


def test_a_terminal_that_can_draw_nothing_gets_lines(
    server: ApiServer, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A live view shows nothing there before its end."""
    monkeypatch.setenv("TERM", "dumb")
    server.answer(f"GET {JOBS}/digits", stored("1", **RUNNING))
    server.answer(f"WATCH {JOBS}", [{"type": "DELETED", "object": stored("2")}])
    out = Terminal()
    assert top(cluster, "digits", out) == 1
    assert out.getvalue().splitlines()[-1] == "digits: it was deleted"
