from __future__ import annotations

import signal

from dtjob.local import outcome, pod_status
from dtjob.objects import topology
from dtjob.objects.pod import pod
from dtjob.plan.children import Children
from tests.unit.operator.builders import NOW, job, stored


def pods(**codes: int):
    """A pod for each task of a job, running unless its code is named by role."""
    found = []
    for task in topology.tasks(job()):
        manifest = pod(job(), task, 0)
        code = codes.get(task.role.value)
        manifest["status"] = pod_status.running(NOW) if code is None else pod_status.ended(code, NOW, NOW, "")
        found.append(manifest)
    return found


def observed(found) -> Children:
    return Children(tuple(stored(manifest) for manifest in found))


def test_a_run_is_over_when_an_ended_jobs_last_process_is():
    assert not outcome.is_over({"phase": "Running"}, [])
    assert not outcome.is_over({}, pods(chief=0, worker=0))
    assert not outcome.is_over({"phase": "Succeeded"}, pods(chief=0))
    assert outcome.is_over({"phase": "Succeeded"}, pods(chief=0, worker=0))
    assert outcome.is_over({"phase": "Failed"}, [])


def test_success_while_it_was_stopped_is_the_chiefs():
    stopped = observed(pods(chief=0, worker=143))
    status = outcome.success_while_stopped(job(), {"phase": "Running"}, stopped, NOW)
    assert status is not None
    assert (status["phase"], status["reason"]) == ("Succeeded", "Completed")


def test_what_was_told_to_end_has_not_failed():
    for code in (143, -signal.SIGKILL, 1):
        stopped = observed(pods(chief=code, worker=code))
        assert outcome.success_while_stopped(job(failurePolicy={"maxRestarts": 0}), {}, stopped, NOW) is None
