"""`Model.fit` itself: right where it runs, and refused at once, by name of what to use instead, where it cannot."""

from pathlib import Path

import pytest

from tests.trainer.support.harness import Cluster

TWO = {"logicalCPUs": 2}
PARAMETER_SERVER = {"chief": 1, "worker": 1, "ps": 1}


def found(directory: Path, strategy: str, counts: dict[str, int], package: str, **options: int) -> list[float]:
    """Losses and metrics that the first task prints."""
    with Cluster(directory, strategy, counts, "model_fit.py", f"--package={package}", options=options) as run:
        run.start()
        trains = [task for task in run.tasks if strategy != "ParameterServer" or task == "chief-0"]
        run.expect_success(*trains)
        (line,) = (line for line in run[trains[0]].output().splitlines() if line.startswith("found "))
        return [float(number) for number in line.split()[1:]]


@pytest.fixture(scope="module")
def one_device(tmp_path_factory: pytest.TempPathFactory) -> list[float]:
    return found(tmp_path_factory.mktemp("one-device"), "OneDevice", {"chief": 1}, "keras")


@pytest.mark.parametrize(
    ("strategy", "counts", "package", "options"),
    [
        ("Default", {"chief": 1}, "keras", {}),
        ("Mirrored", {"chief": 1}, "keras", TWO),
        ("Mirrored", {"chief": 1}, "tf_keras", TWO),
        ("CentralStorage", {"chief": 1}, "keras", TWO),
        ("CentralStorage", {"chief": 1}, "tf_keras", TWO),
        ("MultiWorkerMirrored", {"worker": 2}, "tf_keras", {}),
    ],
)
@pytest.mark.slow  # test_strategy_table.py shows less of the same in every run
def test_fit_is_right_where_it_runs(
    one_device: list[float],
    tmp_path: Path,
    strategy: str,
    counts: dict[str, int],
    package: str,
    options: dict[str, int],
) -> None:
    assert len(one_device) == 6
    assert found(tmp_path, strategy, counts, package, **options) == pytest.approx(one_device, rel=1e-5)


@pytest.mark.slow
def test_tf_keras_fits_under_parameter_server(tmp_path: Path) -> None:
    numbers = found(tmp_path, "ParameterServer", PARAMETER_SERVER, "tf_keras")
    assert numbers[1] < numbers[0]


@pytest.mark.parametrize(
    ("strategy", "counts"), [("MultiWorkerMirrored", {"chief": 1, "worker": 1}), ("ParameterServer", PARAMETER_SERVER)]
)
def test_fit_of_keras_3_is_refused_where_it_fails(tmp_path: Path, strategy: str, counts: dict[str, int]) -> None:
    with Cluster(tmp_path, strategy, counts, "model_fit.py", "--refused") as run:
        run.start()
        trains = run.tasks if strategy == "MultiWorkerMirrored" else ["chief-0"]
        codes = {task: run[task].exit_code() for task in trains}
        refused = [task for task, code in codes.items() if code == 1]
        # The end of the first may reach a slower peer while it still makes its variables with it: a lost peer, 75.
        assert refused, codes
        assert set(codes.values()) <= {1, 75}, codes
        message = (
            f"Model.fit cannot be used under {strategy}: Keras 3 fails inside TensorFlow there; "
            "train with dtjob_trainer.fit(model, x, y, …), which also saves and resumes the run"
        )
        for task in refused:
            said = run[task].output().splitlines()
            assert message in said, run[task].output()
            assert said[-1] == f"dtjob_trainer.errors.ModelFitError: {message}"
            assert "dtjob_trainer.fit" in run[task].status["message"]


def test_fit_is_refused_in_an_evaluator_which_would_train_a_model_of_its_own(tmp_path: Path) -> None:
    counts = {"chief": 1, "evaluator": 1}
    with Cluster(tmp_path, "Mirrored", counts, "model_fit.py", options=TWO, checkpoint={"everySteps": 1}) as run:
        run.start("evaluator-0")
        assert run["evaluator-0"].exit_code() == 1
        assert "in a job with replicaSpecs.evaluator" in run["evaluator-0"].output()
