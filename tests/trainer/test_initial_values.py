# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.models.initial_values: variables begin with the chief's values, in real groups of tasks."""

import re
from pathlib import Path

from tests.trainer.support.harness import Cluster

GROUP = {"chief": 1, "worker": 1}


def group(directory: Path, *args: str, **options: object) -> Cluster:
    """Two tasks under MultiWorkerMirrored."""
    return Cluster(directory, "MultiWorkerMirrored", GROUP, "initial_values.py", *args, **options)  # type: ignore[arg-type]


def fitted(run: Cluster) -> str:
    """What every task has come to, the same in all: weights and optimizer summed up."""
    found = {re.search(r"fit (\S+) \[10\.0, 10\.0\] sent 0", run[task].output()) for task in run.tasks}
    assert None not in found, run["worker-0"].output()
    (sums,) = {match[1] for match in found if match}
    return sums


def test_a_step_of_the_programs_own_begins_with_the_chiefs_values(tmp_path: Path) -> None:
    """The one variable that is made within the step is TensorFlow's to send."""
    with group(tmp_path, "step") as run:
        run.run()
        for task in run.tasks:
            assert "step [31.0, 31.0] [10.0, 10.0] 20.0 sent 1" in run[task].output()


def test_a_step_of_the_chief_alone_waits_for_the_others_to_begin(tmp_path: Path) -> None:
    with group(tmp_path, "chief") as run:
        run.run()
        fitted(run)


def test_fit_begins_with_the_chiefs_values_and_a_restart_with_those_of_the_checkpoint(tmp_path: Path) -> None:
    """What is derived from the chief's values, and is in no checkpoint, begins as the chief has it in both."""
    with group(tmp_path, "fit", checkpoint={"everySteps": 1}) as run:
        run.run()
        trained = fitted(run)
        (run.checkpoints / "DONE").unlink(missing_ok=True)
        run.run()
        assert [run[task].status["restoredStep"] for task in run.tasks] == [1, 1]
        assert fitted(run) == trained


def test_a_task_that_does_something_else_between_two_calls_of_fit_is_named(tmp_path: Path) -> None:
    """It makes a variable, as by load_model at the chief alone; or it goes on with the next call after an error."""
    with group(tmp_path, "fit", "apart") as run:
        run.start()
        for task in run.tasks:
            assert run[task].exit_code() == 1
            assert "refused: task worker-0 has made 1 variables and chief-0 0;" in run[task].output()
            told = run[task].status["exception"]
            assert told["type"] == "StateError"
            assert told["message"].startswith("task worker-0 is in call 4 of fit or train, and chief-0 in call 3; make")


def test_a_task_that_makes_other_variables_is_named(tmp_path: Path) -> None:
    with group(tmp_path, "step", "more") as run:
        run.start()
        for task in run.tasks:
            assert run[task].exit_code() == 1
            told = run[task].status["exception"]
            said = r"task worker-0 has made (\d+) variables and chief-0 (\d+); make the same ones in every"
            found = re.match(said, told["message"])
            assert told["type"] == "StateError"
            assert found is not None, told
            assert int(found[1]) == int(found[2]) + 1
