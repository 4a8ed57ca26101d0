# SPDX-License-Identifier: Apache-2.0
"""Event files as TensorBoard reads them: of steps that were done twice it shows what was written last."""

import json
import signal
import time
from pathlib import Path

import pytest

from tests.trainer.support.event_files import marked_steps, scalars
from tests.trainer.support.harness import Cluster, by_hand

WRITE = """
import sys
from dtjob_trainer.tensorboard.event_file import Events
first, second = Events(sys.argv[1], print), Events(sys.argv[1], print)
for step in (10, 20, 30, 40):  # killed after a checkpoint at 20
    first.scalars(step, {"loss": 1.0, "accuracy": 0.5})
for step in (30, 40, 50):
    second.scalars(step, {"loss": 2.0})
"""


def test_a_resumed_run_replaces_the_steps_that_it_does_again(tmp_path: Path) -> None:
    by_hand(WRITE, str(tmp_path / "events"), directory=tmp_path)
    found = scalars(tmp_path / "events")
    assert found["loss"] == [(10, 1.0), (20, 1.0), (30, 2.0), (40, 2.0), (50, 2.0)]
    assert found["accuracy"] == [(10, 0.5), (20, 0.5)]


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [[], ["--package=tf_keras", "--no-dropout"]])
def test_a_custom_loop_that_is_killed_shows_each_step_once(tmp_path: Path, arguments: list[str]) -> None:
    gate, board = tmp_path / "gate", {"everySteps": 15, "profile": {"firstStep": 5, "steps": 2}}
    with Cluster(
        tmp_path,
        "Mirrored",
        {"chief": 1},
        "custom.py",
        *("--data=function", "--hold=2", f"--gate={gate}", *arguments),  # at step 40
        checkpoint={"everySteps": 25},
        options={"logicalCPUs": 2},
        env={"DTJOB_TENSORBOARD": json.dumps(board)},
    ) as run:
        run.start()
        run["chief-0"].wait_for_checkpoint(25)
        events = run.checkpoints / "events" / "train"
        while sum(file.read_bytes().count(b"accuracy") for file in events.glob("events.*")) < 2:  # at 15 and 30
            assert run["chief-0"].process.poll() is None, run["chief-0"].output()
            time.sleep(0.01)
        run["chief-0"].kill()
        assert run["chief-0"].exit_code() == -signal.SIGKILL
        gate.touch()
        run.run()
        assert run["chief-0"].status["restoredStep"] == 25
        found = scalars(events)
        rates = sorted(tag for tag in found if tag.startswith("learning_rate/"))
        assert [tag.lower() for tag in rates] == ["learning_rate/0-sgd", "learning_rate/1-adam"]
        for tag in ("loss", "accuracy", *rates):
            assert [step for step, _ in found[tag]] == [15, 30, 45, 60], tag
        assert found["loss"][-1][1] == pytest.approx(run["chief-0"].status["metrics"]["loss"], rel=1e-6)
        assert found[rates[0]][0][1] == pytest.approx(0.05)
        assert marked_steps(events) == [5, 6]
