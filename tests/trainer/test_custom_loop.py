# SPDX-License-Identifier: Apache-2.0
"""`train` with real processes: the same result under every strategy, and the same bits after kills."""

import re
import signal
from pathlib import Path

import pytest

from tests.trainer.support.harness import Cluster, saved_arrays

LAST, EVERY, STEPS_PER_EPOCH = 60, 7, 20
HELD = 2 * STEPS_PER_EPOCH
"""The step at which held runs wait."""
BEFORE = HELD // EVERY * EVERY
"""The newest checkpoint then."""
CHECKPOINT = {"everySteps": EVERY}
TWO = {"logicalCPUs": 2}
RESULT = re.compile(r"loss ([\d.]+) accuracy ([\d.]+) examples (\d+) steps (\d+)")


def result(run: Cluster) -> tuple[float, float, int, int]:
    """Loss of the last step, accuracy on all examples, and what the program counted: examples and steps."""
    said = next(iter(run.members.values())).output()
    found = RESULT.search(said)
    assert found
    assert f"metric {found[3]}\n" in said, "a metric counts what a variable counts"
    return float(found[1]), float(found[2]), int(found[3]), int(found[4])


RUNS: dict[str, tuple[str, dict[str, int], dict[str, int], str]] = {
    "by hand": ("Default", {"chief": 1}, {}, "--data=arrays"),
    "two replicas": ("Mirrored", {"chief": 1}, TWO, "--data=arrays"),
    "three tasks": ("MultiWorkerMirrored", {"chief": 1, "worker": 2}, {}, "--data=function"),
    "one device": ("OneDevice", {"chief": 1}, {}, "--data=function"),
    "central": ("CentralStorage", {"chief": 1}, TWO, "--data=arrays"),
    "two tasks": ("MultiWorkerMirrored", {"worker": 2}, {}, "--data=arrays"),
}


@pytest.mark.parametrize("names", [[*RUNS][:3], pytest.param([*RUNS][:1] + [*RUNS][3:], marks=pytest.mark.slow)])
def test_every_strategy_and_kind_of_data_trains_what_one_device_trains(tmp_path: Path, names: list[str]) -> None:
    """Gradients that are clipped and accumulated included, those of the global batch, and averages of weights."""
    ends = {}
    for name in names:
        strategy, counts, options, data = RUNS[name]
        with Cluster(tmp_path / name, strategy, counts, "custom.py", "--plain", data, options=options) as run:
            run.run()
            ends[name] = result(run)
            status = next(iter(run.members.values())).status
            assert status["step"] == status["totalSteps"] == LAST
            assert status["metrics"]["loss"] == pytest.approx(ends[name][0], abs=1e-5)
    for name, (loss, accuracy, examples, steps) in ends.items():
        assert loss == pytest.approx(ends["by hand"][0], rel=1e-4), name
        assert accuracy == pytest.approx(ends["by hand"][1], abs=2e-3), name
        assert (examples, steps) == (LAST * 48, LAST), name


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["Mirrored", "MultiWorkerMirrored"])
def test_tf_keras_models_and_datasets_of_the_program(tmp_path: Path, strategy: str) -> None:
    """A dataset that the program has distributed trains as ours does, but does not resume exactly."""
    counts, options = ({"chief": 1}, TWO) if strategy == "Mirrored" else ({"worker": 2}, {})
    ends = []
    for data in ("dataset", "distributed"):
        arguments = ("--plain", "--package=tf_keras", f"--data={data}")
        with Cluster(
            tmp_path / data, strategy, counts, "custom.py", *arguments, options=options, checkpoint=CHECKPOINT
        ) as run:
            run.run()
            status = next(iter(run.members.values())).status
            assert status["resume"] == ("exact" if data == "dataset" else "approximate")
            ends.append(result(run))
    assert ends[0] == pytest.approx(ends[1], rel=1e-4)


@pytest.mark.slow
def test_a_changed_number_of_workers_goes_on_from_the_last_step(tmp_path: Path) -> None:
    """3 workers, then 2; the model without Dropout ends as one device's, which nobody disturbed."""
    checkpoint = {**CHECKPOINT, "directory": str(tmp_path / "checkpoints")}
    for workers, steps in ((3, LAST // 2), (2, LAST)):
        with Cluster(
            tmp_path / str(workers),
            "MultiWorkerMirrored",
            {"worker": workers},
            "custom.py",
            "--plain",
            f"--total-steps={steps}",
            checkpoint=checkpoint,
            uid=f"uid-{workers}",
        ) as run:
            run.run()
            status, end = run["worker-0"].status, result(run)
            assert status["step"] == steps
            assert status.get("restoredStep") == (0 if workers == 3 else LAST // 2)
            assert status["resume"] == ("exact" if workers == 3 else "approximate")
    with Cluster(tmp_path / "one", "Default", {"chief": 1}, "custom.py", "--plain") as run:
        run.run()
        assert end == pytest.approx(result(run), rel=1e-3)


@pytest.mark.parametrize("package", ["keras", pytest.param("tf_keras", marks=pytest.mark.slow)])
def test_parameter_server_counts_every_step_and_example(tmp_path: Path, package: str) -> None:
    counts = {"chief": 1, "worker": 2, "ps": 1}
    arguments = (f"--package={package}", "--total-steps=200")
    with Cluster(tmp_path, "ParameterServer", counts, "custom.py", *arguments, checkpoint=CHECKPOINT) as run:
        run.start()
        run.expect_success("chief-0")
        _, accuracy, examples, steps = result(run)
        assert (examples, steps) == (200 * 48, 200)
        assert accuracy > 0.9
        assert run["chief-0"].status["resume"] == "approximate"


def held(directory: Path, strategy: str, counts: dict[str, int], *args: str, **options: int) -> Cluster:
    """A run that waits at step HELD until its gate is opened."""
    return Cluster(
        directory,
        strategy,
        counts,
        "custom.py",
        "--data=function",
        f"--hold={HELD // STEPS_PER_EPOCH}",
        f"--gate={directory / 'gate'}",
        *args,
        checkpoint=CHECKPOINT,
        options=options,
    )


@pytest.mark.parametrize(
    ("package", "killed"),
    [
        ("keras", ["chief-0"]),
        *(pytest.param(each, ["chief-0", "worker-0"], marks=pytest.mark.slow) for each in ("keras", "tf_keras")),
    ],
)
def test_killed_and_resumed_run_ends_with_the_same_bits(tmp_path: Path, package: str, killed: list[str]) -> None:
    """Both packages' BatchNormalization and optimizers; Dropout and noise where their seeds can be saved."""
    arguments = [f"--package={package}"] + (["--no-dropout"] if package == "tf_keras" else [])
    ends = []
    for victims in ([], killed):
        directory = tmp_path / str(len(victims))
        with held(directory, "MultiWorkerMirrored", {"chief": 1, "worker": 1}, *arguments) as run:
            run.start()
            for victim in victims:
                for task in run.tasks:
                    run[task].wait_until(lambda status: status.get("state") == "training", "training")
                run["chief-0"].wait_until(lambda s: (s.get("checkpoint") or {}).get("step") == BEFORE, "its checkpoint")
                run[victim].kill()
                (directory / "gate").touch()
                peer = "chief-0" if victim == "worker-0" else "worker-0"
                assert run[victim].exit_code() == -signal.SIGKILL
                assert run[peer].exit_code() == 75
                (directory / "gate").unlink()
                run.start()
            (directory / "gate").touch()
            run.expect_success()
            status = run["chief-0"].status
            assert status.get("restoredStep") == (BEFORE if victims else 0)
            assert status["resume"] == "exact", run["chief-0"].output()
            assert Path(status["model"]) == run.checkpoints / "encoder.keras"
            assert result(run)[2:] == (LAST * 48, LAST)
            ends.append((saved_arrays(run.checkpoints, LAST), status["metrics"]))
    assert ends[0] == ends[1]


@pytest.mark.slow  # a group that is killed is in every run
@pytest.mark.parametrize(("strategy", "options"), [("Mirrored", TWO), ("CentralStorage", TWO), ("Default", {})])
def test_a_killed_single_process_ends_with_the_same_bits(
    tmp_path: Path, strategy: str, options: dict[str, int]
) -> None:
    arrays = []
    for killed in (False, True):
        directory = tmp_path / str(killed)
        with held(directory, strategy, {"chief": 1}, **options) as run:
            run.start()
            if killed:
                run["chief-0"].wait_for_checkpoint(BEFORE)
                run["chief-0"].kill()
                assert run["chief-0"].exit_code() == -signal.SIGKILL
                run.start()
            (directory / "gate").touch()
            run.expect_success()
            assert run["chief-0"].status["resume"] == "exact"
            assert result(run)[2:] == (LAST * 48, LAST)
            arrays.append(saved_arrays(run.checkpoints, LAST))
    assert arrays[0] == arrays[1]


def test_sigterm_to_one_task_saves_all_at_one_step_and_missing_variables_are_named(tmp_path: Path) -> None:
    # far more steps than lie between two agreements, so that the run cannot end before it looks
    with held(tmp_path, "MultiWorkerMirrored", {"worker": 2}, "--forget", f"--total-steps={5 * LAST}") as run:
        run.start()
        run["worker-0"].wait_for_checkpoint(BEFORE)
        run["worker-1"].kill(signal.SIGTERM)
        (tmp_path / "gate").touch()
        assert [run[task].exit_code() for task in run.tasks] == [75, 143]
        (step,) = {run[task].status["step"] for task in run.tasks}
        assert run["worker-0"].status["checkpoint"]["step"] == step >= BEFORE
        run.run()
        assert run["worker-0"].status["restoredStep"] == step
        assert run["worker-0"].status["resume"] == "approximate"
        assert "adam" in run["worker-0"].output()
        assert "not in variables" in run["worker-0"].output()


def test_refusals_name_the_remedy(tmp_path: Path) -> None:
    with Cluster(tmp_path, "Mirrored", {"chief": 1}, "custom_refusals.py", options=TWO) as run:
        run.run()
        assert "all well" in run["chief-0"].output()
