# SPDX-License-Identifier: Apache-2.0
import pytest

from dtjob.local.recovery import Recoveries, counts
from tests.unit.operator.builders import NOW, deleting, ended, job, pod


def report(pid, state="training", step=100, training_pid=None, restored=None):
    found = {"pid": pid, "state": state, "step": step, "trainingPid": training_pid or pid + 1000}
    return found if restored is None else {**found, "restoredStep": restored}


def test_a_worker_is_killed_under_mirrored_workers():
    """All tasks start again; recovery ends at the chief's first step after the restored one."""
    recoveries = Recoveries("chief-0")
    reports = {"chief-0": report(1), "worker-0": report(2)}
    recoveries.failed("worker-0", reports, now=10.0)
    assert recoveries.observe(reports, 10.1) is None  # nobody has noticed yet
    reports["chief-0"] = report(1, "waiting", training_pid=7)
    reports["worker-0"] = report(3, "starting", step=None)
    assert recoveries.observe(reports, 11.0) is None
    reports["worker-0"] = report(3, restored=90)
    reports["chief-0"] = report(1, step=90, training_pid=7, restored=90)
    assert recoveries.observe(reports, 13.0) is None
    reports["chief-0"] = report(1, step=91, training_pid=7, restored=90)
    assert recoveries.observe(reports, 13.5) == 3.5
    assert recoveries.seconds == [3.5]
    assert recoveries.current is None


def test_the_chief_is_killed_before_the_first_checkpoint():
    recoveries = Recoveries("chief-0")
    reports = {"chief-0": report(1, step=3)}
    recoveries.failed("chief-0", reports, now=0.0)
    assert recoveries.observe(reports, 0.5) is None  # the dead one's last word
    assert recoveries.observe({"chief-0": report(2, step=0)}, 3.0) is None
    assert recoveries.observe({"chief-0": report(2, step=1)}, 4.0) == 4.0


def test_a_parameter_server_worker_is_killed_and_the_chief_goes_on():
    """The chief's process stays; its next step once the worker serves again ends the recovery."""
    recoveries = Recoveries("chief-0")
    reports = {"chief-0": report(1), "worker-0": report(2, "serving")}
    recoveries.failed("worker-0", reports, now=0.0)
    reports |= {"chief-0": report(1, step=105), "worker-0": report(3, "starting")}
    assert recoveries.observe(reports, 1.0) is None
    reports["worker-0"] = report(3, "serving")
    assert recoveries.observe(reports, 2.0) is None
    reports["chief-0"] = report(1, step=106)
    assert recoveries.observe(reports, 2.5) == 2.5


def test_a_second_failure_prolongs_the_recovery():
    recoveries = Recoveries("chief-0")
    reports = {"chief-0": report(1), "worker-0": report(2)}
    recoveries.failed("worker-0", reports, now=0.0)
    recoveries.failed("chief-0", reports, now=1.0)
    again = {"chief-0": report(1, step=101, training_pid=9, restored=100), "worker-0": report(4)}
    assert recoveries.observe(again, 2.0) is None  # the chief's supervisor is still the old one
    again["chief-0"] = report(5, step=101, restored=100)
    assert recoveries.observe(again, 3.0) == 3.0


def test_a_finished_chief_ends_a_recovery():
    recoveries = Recoveries("chief-0")
    recoveries.failed("chief-0", {"chief-0": report(1)}, now=0.0)
    assert recoveries.observe({"chief-0": report(2, "finished", step=100, restored=100)}, 1.0) == 1.0


def test_training_recovers_from_failures_of_those_that_train():
    digits = job(evaluator=True)
    assert counts(pod(digits, "worker-0", ended(1)), NOW)
    assert not counts(pod(digits, "worker-0", ended(0)), NOW)
    assert not counts(pod(digits, "evaluator-0", ended(1)), NOW)
    assert not counts(deleting(pod(digits, "worker-0", ended(143))), NOW)


@pytest.mark.parametrize("notices_late", [False, True])
def test_a_crash_whose_pod_goes_on_is_a_recovery(notices_late: bool):
    """The chief's supervisor tells of it, before or after its own training process has noticed."""
    recoveries = Recoveries("chief-0")

    def seen_at(now, **chief):
        return recoveries.observe({"chief-0": {**report(1, **chief), "crashes": {"count": 1}, "attempt": 0}}, now)

    assert recoveries.observe({"chief-0": report(1, restored=0)}, 9.0) is None
    assert recoveries.current is None
    if notices_late:
        assert seen_at(10.0, step=100, restored=0) is None
        assert seen_at(10.0, step=101, restored=0) is None
    assert seen_at(10.0, state="waiting", training_pid=7) is None
    assert seen_at(12.0, step=90, training_pid=7, restored=90) is None
    assert seen_at(12.5, step=91, training_pid=7, restored=90) == 2.5
    assert seen_at(13.0, step=99, training_pid=7, restored=90) is None
    assert recoveries.seconds == [2.5]


def test_the_crashes_of_a_new_chief_are_counted_from_zero():
    recoveries = Recoveries("chief-0")
    recoveries.observe({"chief-0": {**report(1), "crashes": {"count": 2}, "attempt": 0}}, 1.0)
    recoveries.current = None
    recoveries.observe({"chief-0": {**report(5, "waiting"), "attempt": 1}}, 2.0)
    assert recoveries.current is None
    recoveries.observe({"chief-0": {**report(5, "waiting"), "crashes": {"count": 1}, "attempt": 1}}, 3.0)
    assert recoveries.current is not None
