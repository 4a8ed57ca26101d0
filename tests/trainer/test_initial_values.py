"""dtjob_trainer.models.initial_values: variables begin with the chief's values, in real groups of tasks."""

from __future__ import annotations

import re
from pathlib import Path

from tests.trainer.support.harness import Cluster

GROUP = {"chief": 1, "worker": 1}


def test_a_step_of_the_programs_own_begins_with_the_chiefs_values(tmp_path: Path) -> None:
    """The one variable that is made within the step is TensorFlow's to send."""
    with Cluster(tmp_path, "MultiWorkerMirrored", GROUP, "initial_values.py", "step") as run:
        run.run()
        for task in run.tasks:
            assert "step [31.0, 31.0] [10.0, 10.0] 20.0 sent 1" in run[task].output()


def test_fit_begins_with_the_chiefs_values(tmp_path: Path) -> None:
    with Cluster(tmp_path, "MultiWorkerMirrored", GROUP, "initial_values.py", "fit") as run:
        run.run()
        for task in run.tasks:
            assert "fit [[[5.0]], [0.0]] [10.0, 10.0] sent 0" in run[task].output()


def test_after_a_restart_the_checkpoints_values_count(tmp_path: Path) -> None:
    """And what is in no checkpoint still begins as the chief has it."""
    checkpoint = {"everySteps": 1}
    with Cluster(tmp_path, "MultiWorkerMirrored", GROUP, "initial_values.py", "fit", checkpoint=checkpoint) as run:
        run.run()
        (run.checkpoints / "DONE").unlink(missing_ok=True)
        run.run()
        for task in run.tasks:
            assert run[task].status["restoredStep"] == 1
            assert "fit [[[5.0]], [0.0]] [10.0, 10.0] sent 0" in run[task].output()


def test_a_task_that_makes_other_variables_is_named(tmp_path: Path) -> None:
    with Cluster(tmp_path, "MultiWorkerMirrored", GROUP, "initial_values.py", "more") as run:
        run.start()
        for task in run.tasks:
            assert run[task].exit_code() == 1
            said = r"StateError: task worker-0 has made (\d+) variables and chief-0 (\d+), or others; make the same"
            found = re.search(said, run[task].output())
            assert found is not None
            assert int(found[1]) == int(found[2]) + 1
