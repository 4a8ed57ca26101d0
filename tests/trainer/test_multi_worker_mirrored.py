# SPDX-License-Identifier: Apache-2.0
"""MultiWorkerMirrored with real processes: kills, signals, uneven data. A resumed run must end with the same bits."""

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.trainer.support.event_files import scalars
from tests.trainer.support.harness import Cluster, saved_arrays

GROUP = {"chief": 1, "worker": 2}
EPOCHS, STEPS_PER_EPOCH, EVERY = 6, 16, 10
LAST = EPOCHS * STEPS_PER_EPOCH
CHECKPOINT = {"everySteps": EVERY}
HELD = 3 * STEPS_PER_EPOCH
"""The step at which held runs wait."""
BEFORE = HELD // EVERY * EVERY
"""The newest checkpoint then."""


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A run of chief, two workers and evaluator that nobody disturbs."""
    directory = tmp_path_factory.mktemp("undisturbed")
    with Cluster(directory, "MultiWorkerMirrored", {**GROUP, "evaluator": 1}, "train.py", checkpoint=CHECKPOINT) as run:
        run.run()
        yield run


def held(directory: Path, counts: dict[str, int], *args: str) -> Cluster:
    """A run that waits at step HELD until its gate is opened."""
    return Cluster(
        directory,
        "MultiWorkerMirrored",
        counts,
        "train.py",
        "--hold=3",
        f"--gate={directory / 'gate'}",
        *args,
        checkpoint=CHECKPOINT,
    )


def open_gate(run: Cluster) -> None:
    """Let a held run go on, now and after its restart."""
    (run.directory / "gate").touch()


def test_an_undisturbed_run_reports_saves_and_marks_itself_done(undisturbed: Cluster) -> None:
    status = undisturbed["chief-0"].status
    assert status["step"] == status["totalSteps"] == LAST
    assert status["state"] == "finished"
    assert status["resume"] == "exact"
    assert status["metrics"]["val_accuracy"] > 0.8
    assert status["checkpoint"]["step"] == LAST
    assert Path(status["model"]) == undisturbed.checkpoints / "model.keras"
    names = {path.name for path in undisturbed.checkpoints.iterdir()}
    assert {"DONE", "checkpoint", "model.keras", f"ckpt-{LAST}.index"} <= names
    assert len([name for name in names if name.endswith(".index")]) == 3
    mark = json.loads((undisturbed.checkpoints / "DONE").read_text())
    assert (mark["uid"], mark["step"]) == ("uid-1", LAST)
    steps = [line["step"] for line in undisturbed["chief-0"].lines if "step" in line]
    assert steps == sorted(steps)


def test_evaluator_evaluates_the_last_checkpoint_as_the_group_does(undisturbed: Cluster) -> None:
    evaluation = undisturbed["evaluator-0"].status["evaluation"]
    assert evaluation["step"] == LAST
    metrics = undisturbed["chief-0"].status["metrics"]
    assert evaluation["metrics"]["accuracy"] == pytest.approx(metrics["val_accuracy"], abs=1e-6)
    assert evaluation["metrics"]["loss"] == pytest.approx(metrics["val_loss"], rel=1e-4)


@pytest.mark.slow  # test_local_run.py kills the tasks of such a job in every run
@pytest.mark.parametrize("victim", ["worker-1", "chief-0"])
def test_killed_and_resumed_run_ends_with_the_same_bits(undisturbed: Cluster, tmp_path: Path, victim: str) -> None:
    with held(tmp_path, GROUP) as run:
        run.start()
        run["chief-0"].wait_for_checkpoint(BEFORE)
        for task in run.tasks:
            run[task].wait_for_step(HELD)
        run[victim].kill()
        open_gate(run)
        codes = {task: run[task].exit_code() for task in run.tasks}
        assert codes == {task: (-signal.SIGKILL if task == victim else 75) for task in run.tasks}
        run.run()
        assert run["chief-0"].status["restoredStep"] == BEFORE
        assert run["chief-0"].status["resume"] == "exact"
        assert saved_arrays(run.checkpoints, LAST) == saved_arrays(undisturbed.checkpoints, LAST)
        assert run["chief-0"].status["metrics"] == undisturbed["chief-0"].status["metrics"]


@pytest.mark.slow  # test_custom_loop.py has it in every run
def test_sigterm_to_one_task_saves_all_at_one_step(undisturbed: Cluster, tmp_path: Path) -> None:
    with held(tmp_path, GROUP) as run:
        run.start()
        for task in run.tasks:
            run[task].wait_for_step(HELD)
        run["worker-0"].kill(signal.SIGTERM)
        open_gate(run)
        codes = {task: run[task].exit_code() for task in run.tasks}
        assert codes == {"chief-0": 75, "worker-0": 143, "worker-1": 75}
        (step,) = {run[task].status["step"] for task in run.tasks}
        assert run["chief-0"].status["checkpoint"]["step"] == step >= HELD
        run.run()
        assert run["chief-0"].status["restoredStep"] == step
        assert saved_arrays(run.checkpoints, LAST) == saved_arrays(undisturbed.checkpoints, LAST)


def test_sigterm_to_all_saves_and_ends_all_with_143(tmp_path: Path) -> None:
    with held(tmp_path, {**GROUP, "evaluator": 1}) as run:
        run.start()
        for task in ("chief-0", "worker-0", "worker-1"):
            run[task].wait_for_step(HELD)
        run["evaluator-0"].wait_until(lambda status: status.get("state") == "evaluating", "evaluating")
        for task in run.tasks:
            run[task].kill(signal.SIGTERM)
        open_gate(run)
        assert {run[task].exit_code() for task in run.tasks} == {143}
        assert run["chief-0"].status["checkpoint"]["step"] == run["worker-1"].status["step"]


@pytest.mark.slow
def test_without_chief_worker_0_writes_and_callbacks_keep_their_state(tmp_path: Path) -> None:
    ends = []
    arguments = ("--callbacks", "--data=function", "--examples=961", "--accumulate")
    for name in ("undisturbed", "killed"):
        with held(tmp_path / name, {"worker": 2}, *arguments) as run:
            run.start()
            if name == "undisturbed":
                open_gate(run)
            else:
                run["worker-0"].wait_for_checkpoint(BEFORE)
                run["worker-1"].wait_for_step(HELD)
                run["worker-1"].kill()
                open_gate(run)
                assert [run[task].exit_code() for task in run.tasks] == [75, -signal.SIGKILL]
                run.start()
            run.expect_success()
            assert run["worker-0"].status["resume"] == "exact"
            rows = (run.directory / "log.csv").read_text()
            points = scalars(run.directory / "board" / "train")
            # as after a restart under Keras's own fit, points of steps that were done twice are there twice
            board = {tag: dict(points[tag]) for tag in ("epoch_loss", "epoch_accuracy", "batch_loss")}
            assert len(board["epoch_loss"]) == len(dict(points["epoch_steps_per_second"])) == EPOCHS
            ends.append((saved_arrays(run.checkpoints, LAST), run["worker-0"].status["metrics"], rows, board))
    assert ends[0] == ends[1]


def test_no_task_ends_before_the_last_save_is_on_disk(tmp_path: Path) -> None:
    """A task that ended while others still took from it what they had summed up made them lose that save."""
    arguments = ("train.py", "--epochs=1", "--slow-write=4")
    with Cluster(tmp_path, "MultiWorkerMirrored", {"worker": 2}, *arguments, checkpoint={"everySteps": 1000}) as run:
        run.start()
        run["worker-0"].wait_until(lambda status: status.get("writing") == STEPS_PER_EPOCH, "its last save")
        with pytest.raises(subprocess.TimeoutExpired):
            run["worker-1"].process.wait(2)
        run.expect_success()


def test_a_single_task_trains_and_marks_its_run_done(tmp_path: Path) -> None:
    with Cluster(
        tmp_path, "MultiWorkerMirrored", {"worker": 1}, "train.py", "--epochs=2", checkpoint=CHECKPOINT
    ) as run:
        run.run()
        assert run["worker-0"].status["step"] == 2 * STEPS_PER_EPOCH


def test_models_with_their_own_step_and_batch_callbacks_train(tmp_path: Path) -> None:
    with Cluster(tmp_path, "MultiWorkerMirrored", {"worker": 2}, "own_step.py") as run:
        run.run()
        assert "all well" in run["worker-0"].output()
        assert "4 of 100 examples are left out of each epoch" in run["worker-0"].output()
        assert "batches of 25 make unequal shares for 2 replicas" in run["worker-0"].output()
