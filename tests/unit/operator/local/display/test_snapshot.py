# SPDX-License-Identifier: Apache-2.0
from dtjob.local.display.snapshot import task_lines
from tests.unit.operator.local.display.snapshots import report, snapshot


def lines(*arguments, **options):
    return {line.task: line for line in task_lines(snapshot(*arguments, **options))}


def test_every_task_has_its_line_before_anything_is_reported():
    found = lines()
    assert list(found) == ["chief-0", "worker-0", "worker-1", "evaluator-0"]
    assert {line.state for line in found.values()} == {"starting"}
    assert found["chief-0"].supervisor_pid == 100
    assert found["chief-0"].step is None


def test_a_report_fills_the_line():
    chief = lines([report("chief-0", step=12, loss=0.5, stepsPerSecond=40.0, restartsInPlace=2)])["chief-0"]
    assert (chief.state, chief.training_pid, chief.step, chief.loss) == ("training", 20, 12, 0.5)
    assert (chief.steps_per_second, chief.restarts) == (40.0, 2)


def test_a_task_without_a_process_waits_for_the_import_of_tensorflow():
    nothing = snapshot(pids={}, pods=())
    assert {line.state for line in task_lines(nothing)} == {"importing"}


def test_a_task_without_a_process_has_ended_with_its_job():
    nothing = snapshot([report("chief-0")], status={"phase": "Succeeded"}, pids={}, pods=())
    assert {line.state for line in task_lines(nothing)} == {"ended"}


def test_a_task_in_a_loop_of_the_program_trains():
    assert lines([report("chief-0", "starting", trainsItself=True)])["chief-0"].state == "training"


def test_a_report_of_an_earlier_attempt_does_not_count():
    found = lines([report("worker-1", step=12)], status={"internal": {"attempts": {"exceptions": {"worker-1": 1}}}})[
        "worker-1"
    ]
    assert (found.state, found.step, found.restarts) == ("starting", None, 1)


def test_an_ended_pod_says_how():
    found = lines([report("chief-0", step=9)], ended={"chief-0": 0, "worker-0": -9})
    assert (found["chief-0"].state, found["chief-0"].step) == ("finished", 9)
    assert found["chief-0"].supervisor_pid is None
    assert found["worker-0"].state == "failed"
