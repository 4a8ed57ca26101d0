# SPDX-License-Identifier: Apache-2.0
"""`Model.fit`, `evaluate` and `predict` in a job: they train under the job's strategy, with one device's numbers."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from dtjob_trainer.loops.building import NOT_STATIC
from tests.trainer.support.event_files import marked_steps
from tests.trainer.support.harness import Cluster

TWO = {"logicalCPUs": 2}
PARAMETER_SERVER = {"chief": 1, "worker": 1, "ps": 1}


def run_of(directory: Path, strategy: str, counts: dict[str, int], *arguments: str, **options: int) -> str:
    """What the first task prints."""
    with Cluster(directory, strategy, counts, "model_fit.py", *arguments, options=options) as run:
        run.start()
        trains = [task for task in run.tasks if strategy != "ParameterServer" or task == "chief-0"]
        run.expect_success(*trains)
        assert all("Epoch " not in run[task].output() for task in trains[1:])
        return run[trains[0]].output()


def found(output: str) -> list[float]:
    """Losses and metrics of the epochs, then of the evaluation."""
    (line,) = (line for line in output.splitlines() if line.startswith("found "))
    return [float(number) for number in line.split()[1:]]


@pytest.fixture(scope="module")
def profiled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A run on one device, of which some steps are profiled."""
    directory = tmp_path_factory.mktemp("one-device")
    env = {"DTJOB_TENSORBOARD": json.dumps({"profile": {"firstStep": 2, "steps": 3}})}
    with Cluster(directory, "OneDevice", {"chief": 1}, "model_fit.py", checkpoint={}, env=env) as run:
        run.run()
        yield run


@pytest.fixture(scope="module")
def one_device(profiled: Cluster) -> list[float]:
    return found(profiled["chief-0"].output())


def test_a_profile_has_marks_of_its_steps(profiled: Cluster) -> None:
    assert marked_steps(profiled.checkpoints / "events" / "train") == [2, 3, 4]


@pytest.mark.parametrize(
    ("strategy", "counts", "package", "options"),
    [
        ("MultiWorkerMirrored", {"worker": 2}, "keras", {}),
        *(
            pytest.param(*case, marks=pytest.mark.slow)  # test_strategy_table.py shows less of the same in every run
            for case in (
                ("Default", {"chief": 1}, "keras", {}),
                ("Mirrored", {"chief": 1}, "keras", TWO),
                ("Mirrored", {"chief": 1}, "tf_keras", TWO),
                ("CentralStorage", {"chief": 1}, "keras", TWO),
                ("CentralStorage", {"chief": 1}, "tf_keras", TWO),
                ("MultiWorkerMirrored", {"worker": 2}, "tf_keras", {}),
            )
        ),
    ],
)
def test_a_script_without_dtjob_comes_to_one_devices_numbers(
    one_device: list[float],
    tmp_path: Path,
    strategy: str,
    counts: dict[str, int],
    package: str,
    options: dict[str, int],
) -> None:
    output = run_of(tmp_path, strategy, counts, f"--package={package}", **options)
    assert len(one_device) == 6
    assert found(output) == pytest.approx(one_device, rel=1e-5)
    assert [line for line in output.splitlines() if line.startswith("Epoch ")] == ["Epoch 1/2", "Epoch 2/2"]
    assert ("set_intra_op_parallelism_threads has no effect here: set TF_NUM" in output) == (strategy != "Default")
    if strategy not in ("Default", "Mirrored"):
        assert f"MirroredStrategy() returns the job's strategy, {strategy}; to train under" in output


@pytest.mark.slow
@pytest.mark.parametrize("package", ["keras", "tf_keras"])
@pytest.mark.parametrize("strategy", ["Mirrored", "CentralStorage"])
def test_a_batch_at_a_time_has_one_devices_numbers(tmp_path: Path, strategy: str, package: str) -> None:
    numbers = []
    for name, options in (("Default", {}), (strategy, TWO)):
        with Cluster(
            tmp_path / name, name, {"chief": 1}, "on_batch.py", f"--package={package}", options=options
        ) as run:
            run.start()
            run.expect_success()
            numbers.append(found(run["chief-0"].output()))
    assert len(numbers[0]) == 15
    assert numbers[1] == pytest.approx(numbers[0], rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("strategy", "counts", "options", "legacy"),
    [
        ("Mirrored", {"chief": 1}, TWO, ("--legacy=Adam", "--clipnorm=0.5")),
        ("Mirrored", {"chief": 1}, TWO, ("--legacy=RMSprop", "--clipnorm=0.5")),
        ("CentralStorage", {"chief": 1}, TWO, ("--legacy=Adam",)),  # where tf_keras refuses clipnorm
        ("MultiWorkerMirrored", {"chief": 1, "worker": 1}, {}, ("--legacy=Adam", "--clipnorm=0.5")),
    ],
)
def test_older_optimizers_of_tf_keras_have_one_devices_numbers_and_resume(
    tmp_path: Path, strategy: str, counts: dict[str, int], options: dict[str, int], legacy: tuple[str, ...]
) -> None:
    arguments = ("model_fit.py", "--package=tf_keras", *legacy)
    numbers = []
    for name, tasks, given, epochs in (
        ("Default", {"chief": 1}, {}, 3),
        (strategy, counts, options, 1),
        (strategy, counts, options, 3),
    ):
        with Cluster(
            tmp_path / name, name, tasks, *arguments, f"--epochs={epochs}", options=given, checkpoint={"everySteps": 9}
        ) as run:
            run.start()
            run.expect_success()
            numbers.append(found(run["chief-0"].output()))
    assert "resumed from the checkpoint" in run["chief-0"].output()
    assert numbers[2] == pytest.approx(numbers[0], rel=1e-5)
    assert len(numbers[2]) == 8


def test_a_script_of_parameter_servers_trains_as_it_is(tmp_path: Path) -> None:
    numbers = found(run_of(tmp_path, "ParameterServer", PARAMETER_SERVER, "--strategy=ParameterServerStrategy"))
    assert numbers[1] < numbers[0]


def test_predictions_are_computed_by_shares_and_every_task_gets_all_of_them(tmp_path: Path) -> None:
    with Cluster(tmp_path, "MultiWorkerMirrored", {"worker": 2}, "predictions.py") as run:
        run.start()
        run.expect_success(*run.tasks)
        assert all("predicted" in run[task].output().splitlines() for task in run.tasks)


def test_the_number_of_rows_is_static_where_all_batches_are_full(tmp_path: Path) -> None:
    with Cluster(tmp_path, "Default", {"chief": 1}, "static_rows.py") as run:
        run.start()
        run.expect_success("chief-0")
        found = re.findall(r"(?m)^(Reshapes|OwnStep) \[([\d, ]+)\] ([\d.]+)$", run["chief-0"].output())
    assert [(kind, seen) for kind, seen, _ in found] == [("Reshapes", "16, 32"), ("OwnStep", "16, 32")]
    assert float(found[0][2]) > 5  # of weights that were 4 in all, and are to be 8
    assert float(found[0][2]) == pytest.approx(float(found[1][2]), rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("strategy", "counts"), [("MultiWorkerMirrored", {"worker": 2}), ("ParameterServer", PARAMETER_SERVER)]
)
def test_a_model_that_needs_the_static_number_of_rows_says_what_to_write(
    tmp_path: Path, strategy: str, counts: dict[str, int]
) -> None:
    with Cluster(tmp_path, strategy, counts, "static_rows.py") as run:
        run.start()
        chief = run[next(iter(run.tasks)) if strategy != "ParameterServer" else "chief-0"]
        assert chief.exit_code() == 1
        assert NOT_STATIC in chief.output()


def test_fit_in_an_evaluator_follows_checkpoints(tmp_path: Path) -> None:
    counts = {"chief": 1, "evaluator": 1}
    with Cluster(tmp_path, "Mirrored", counts, "model_fit.py", options=TWO, checkpoint={"everySteps": 1}) as run:
        run.start("evaluator-0")
        assert run["evaluator-0"].exit_code() == 1
        assert "replicaSpecs.evaluator needs validation_data in fit()" in run["evaluator-0"].output()


def test_arguments_that_the_job_leaves_open_are_used_and_the_others_named(tmp_path: Path) -> None:
    options = {**TWO, "crossDeviceOps": "HierarchicalCopy"}
    with Cluster(tmp_path, "Mirrored", {"chief": 1}, "own_strategy.py", options=options) as run:
        run.start()
        run.expect_success()
        said = run["chief-0"].output()
        assert "cross_device_ops is left aside: spec.strategyOptions.crossDeviceOps decides" in said
        assert "MirroredStrategy(devices=['/cpu:0']): replicas in this task: 1" in said
        assert "devices=['/gpu:0', '/gpu:1'] is left aside, because this task has no such devices" in said
