# SPDX-License-Identifier: Apache-2.0
"""Strategies of one process, the program run by hand, saves that are torn, and what is refused."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.trainer.support.harness import ROOT, Cluster, by_hand, saved_arrays

EPOCHS, STEPS_PER_EPOCH = 6, 16
LAST = EPOCHS * STEPS_PER_EPOCH
HELD, BEFORE = 3 * STEPS_PER_EPOCH, 40
CHECKPOINT = {"everySteps": 10}


@pytest.mark.parametrize(
    ("strategy", "every_steps", "hold", "arguments"),
    # resumed in the middle of an epoch; and at its last batch, so that the smallest one is the first that is seen
    [
        pytest.param("Mirrored", 10, 3, [], marks=pytest.mark.slow),
        # in the middle of three accumulated steps
        pytest.param("Mirrored", 10, 3, ["--accumulate", "--steps-per-execution=4"], marks=pytest.mark.slow),
        pytest.param("CentralStorage", 10, 3, [], marks=pytest.mark.slow),
        pytest.param("Default", 10, 3, [], marks=pytest.mark.slow),
        pytest.param("Default", 15, 1, [], marks=pytest.mark.slow),
        pytest.param("Default", 10, 3, ["--data=random"], marks=pytest.mark.slow),
        pytest.param("Default", 10, 3, ["--data=dataset"], marks=pytest.mark.slow),
        pytest.param("Default", 10, 3, ["--jit"], marks=pytest.mark.slow),
        pytest.param("OneDevice", 10, 3, ["--jit", "--data=dataset"], marks=pytest.mark.slow),
    ],
)
def test_killed_and_resumed_run_ends_with_the_same_bits(
    tmp_path: Path, strategy: str, every_steps: int, hold: int, arguments: list[str]
) -> None:
    options = {} if strategy == "Default" else {"logicalCPUs": 2}
    ends = []
    before = hold * STEPS_PER_EPOCH // every_steps * every_steps
    for name in ("undisturbed", "killed"):
        directory = tmp_path / name
        gate = directory / "gate"
        with Cluster(
            directory,
            strategy,
            {"chief": 1},
            "train.py",
            f"--hold={hold}",
            f"--gate={gate}",
            "--callbacks",
            *arguments,
            checkpoint={"everySteps": every_steps},
            options=options,
        ) as run:
            run.start()
            run["chief-0"].wait_for_checkpoint(before)
            if name == "killed":
                run["chief-0"].wait_for_step(hold * STEPS_PER_EPOCH)
                run["chief-0"].kill()
                assert run["chief-0"].exit_code() == -signal.SIGKILL
                run.start()
            gate.touch()
            run.expect_success()
            status = run["chief-0"].status
            assert status["resume"] == "exact"
            assert (status["restoredStep"] > 0) == (name == "killed")
            rows = (directory / "log.csv").read_text()
            assert len(rows.splitlines()) == 1 + EPOCHS
            ends.append((saved_arrays(run.checkpoints, LAST), status["metrics"], rows))
    assert ends[0] == ends[1]
    assert any(name.startswith("array/") for name in ends[0][0]), "of callbacks"


@pytest.mark.slow  # own_step.py shows in every run that the optimizers are built before the first step
@pytest.mark.parametrize("strategy", ["Default", "Mirrored"])
def test_optimizers_of_an_own_train_step_are_in_the_checkpoint(tmp_path: Path, strategy: str) -> None:
    ends = []
    for killed in (False, True):
        gate = tmp_path / f"{killed}.gate"
        options = {} if strategy == "Default" else {"logicalCPUs": 2}
        with Cluster(
            tmp_path / str(killed),
            strategy,
            {"chief": 1},
            "own_optimizers.py",
            "--hold=2",
            f"--gate={gate}",
            checkpoint={"everySteps": 3},
            options=options,
        ) as run:
            run.start()
            if killed:
                run["chief-0"].wait_for_checkpoint(9)
                run["chief-0"].kill()
                assert run["chief-0"].exit_code() == -signal.SIGKILL
                run.start()
            gate.touch()
            run.expect_success()
            assert run["chief-0"].status["resume"] == "exact", run["chief-0"].output()
            ends.append((saved_arrays(run.checkpoints, 20), run["chief-0"].status["metrics"]))
    assert ends[0] == ends[1]
    assert sum("momentum" in name for name in ends[0][0]) >= 2 + 2 + 4


@pytest.mark.slow  # test_one_device.py trains on data of unknown length in every run
def test_the_last_batch_of_unknown_length_is_cut_as_it_comes(tmp_path: Path) -> None:
    """970 examples in batches of 64: the last batch holds ten."""
    ends = []
    for strategy, data in (("OneDevice", "dataset"), ("Mirrored", "unknown")):
        arguments = ("train.py", "--plain", "--examples=970", "--epochs=2", f"--data={data}")
        options = {"logicalCPUs": 2} if strategy == "Mirrored" else {}
        with Cluster(tmp_path / strategy, strategy, {"chief": 1}, *arguments, options=options) as run:
            run.run()
            ends.append(run["chief-0"].status["metrics"])
    assert ends[1] == pytest.approx(ends[0], rel=1e-5)


def test_every_strategy_and_kind_of_data_trains_what_one_device_trains(tmp_path: Path) -> None:
    """961 examples in batches of 64: the last batch holds one, so that some replica gets none."""
    common = ("--plain", "--examples=961", "--epochs=2")
    runs: dict[str, tuple[str, dict[str, int], list[str]]] = {
        "one device": ("OneDevice", {"chief": 1}, []),
        "two replicas": ("Mirrored", {"chief": 1}, []),
        "two tasks": ("MultiWorkerMirrored", {"worker": 2}, ["--data=function"]),
    }
    metrics = {}
    for name, (strategy, counts, arguments) in runs.items():
        options = {"logicalCPUs": 2} if strategy == "Mirrored" else {}
        with Cluster(tmp_path / name, strategy, counts, "train.py", *common, *arguments, options=options) as run:
            run.run()
            metrics[name] = next(iter(run.members.values())).status["metrics"]
    assert metrics["two replicas"] == pytest.approx(metrics["one device"], rel=1e-4)
    assert metrics["two tasks"] == pytest.approx(metrics["one device"], rel=1e-4)


@pytest.mark.parametrize("shards", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_checkpoints_that_dtjob_did_not_write_are_left_alone(tmp_path: Path, shards: int) -> None:
    with Cluster(tmp_path, "Default", {"chief": 1}, "train.py", checkpoint=CHECKPOINT) as run:
        run.checkpoints.mkdir(parents=True)
        prefix = str(run.checkpoints / "ckpt-7")
        write = f"import tensorflow as tf\ntf.train.Checkpoint(v=tf.Variable(1.0)).write({prefix!r})"
        by_hand(write, directory=tmp_path)
        if shards == 2:  # as a program with several devices writes it
            whole = run.checkpoints / "ckpt-7.data-00000-of-00001"
            whole.rename(run.checkpoints / "ckpt-7.data-00000-of-00002")
        theirs = {path: path.read_bytes() for path in run.checkpoints.iterdir()}
        run.start()
        assert run["chief-0"].exit_code() == 1
        assert "was not written by dtjob; choose another checkpoint.storage" in run["chief-0"].output()
        assert {path: path.read_bytes() for path in run.checkpoints.iterdir()} == theirs


@pytest.mark.slow  # as `make chaos` does at length
def test_kills_in_the_middle_of_saves_leave_whole_checkpoints(tmp_path: Path) -> None:
    with Cluster(
        tmp_path, "Default", {"chief": 1}, "train.py", "--epochs=60", checkpoint={"everySteps": 1, "maxToKeep": 2}
    ) as run:
        restored = 0
        for kills in range(4):
            run.start()
            step = restored + 20 + 7 * kills
            run["chief-0"].wait_for_checkpoint(step)
            run["chief-0"].kill()
            assert run["chief-0"].exit_code() == -signal.SIGKILL
            assert run["chief-0"].status.get("restoredStep", 0) >= restored
            restored = step
            (run.checkpoints / f"ckpt-{10**6}_temp").mkdir()  # as a save that was killed early leaves it
            (run.checkpoints / f"ckpt-{10**6}.data-00000-of-00001").write_bytes(b"torn")
            (run.checkpoints / ".saving-model.keras").write_bytes(b"torn")
        run.start()
        assert run["chief-0"].wait_until(lambda s: "restoredStep" in s, "restored")["restoredStep"] >= restored
        run["chief-0"].wait_for_step(restored + 1)
        names = sorted(path.name for path in run.checkpoints.iterdir())
        assert not any(re.search(rf"{10**6}|\.saving", name) for name in names), names


def test_signal_saves_and_the_next_process_goes_on(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with Cluster(
        tmp_path, "Default", {"chief": 1}, "train.py", "--hold=3", f"--gate={gate}", checkpoint={"everySeconds": 3600}
    ) as run:
        run.start()
        run["chief-0"].wait_for_step(HELD)
        run["chief-0"].kill(signal.SIGTERM)
        gate.touch()
        assert run["chief-0"].exit_code() == 143
        step = run["chief-0"].status["checkpoint"]["step"]
        assert step >= HELD
        run.run()
        assert run["chief-0"].status["restoredStep"] == step


def test_example_runs_by_hand(tmp_path: Path) -> None:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("DTJOB_")}
    environ |= {"PYTHONPATH": str(ROOT / "trainer_image"), "TF_CPP_MIN_LOG_LEVEL": "2"}
    command = [sys.executable, str(ROOT / "examples" / "digits.py"), "--epochs=5"]
    result = subprocess.run(command, env=environ, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    found = re.search(r"held-out accuracy ([\d.]+)", result.stdout)
    assert found
    assert float(found[1]) > 0.9
    assert [path.name for path in tmp_path.iterdir()] == ["model.keras"]


def test_a_saved_model_loads_without_a_strategy_and_refusals_name_the_remedy(tmp_path: Path) -> None:
    """Many refusals in one process: importing TensorFlow for each would take most of a minute."""
    with Cluster(
        tmp_path, "Mirrored", {"chief": 1}, "train.py", "--epochs=1", options={"logicalCPUs": 2}, checkpoint=CHECKPOINT
    ) as run:
        run.run()
        model = run["chief-0"].status["model"]
    by_hand("refusals.py", model, directory=tmp_path)
