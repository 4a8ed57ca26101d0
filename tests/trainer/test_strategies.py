# SPDX-License-Identifier: Apache-2.0
"""Every strategy trains what the undistributed run trains: its losses and metrics, on the digits."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.support.harness import Cluster, by_hand

ARGUMENTS = ("--plain", "--epochs=4")
TWO = {"logicalCPUs": 2}


def metrics_of(
    directory: Path, strategy: str, counts: Mapping[str, int], options: Mapping[str, Any]
) -> dict[str, float]:
    with Cluster(directory, strategy, counts, "train.py", *ARGUMENTS, options=options) as run:
        run.start()
        first = next(iter(run.members))
        run.expect_success(*(task for task in run.tasks if strategy != "ParameterServer" or task == first))
        metrics: dict[str, float] = run[first].status["metrics"]
        return metrics


@pytest.fixture(scope="module")
def undistributed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, float]:
    metrics = metrics_of(tmp_path_factory.mktemp("undistributed"), "Default", {"chief": 1}, {})
    assert metrics["val_accuracy"] > 0.85
    return metrics


@pytest.mark.parametrize(
    ("strategy", "counts", "options"),
    [
        pytest.param("OneDevice", {"chief": 1}, {"logicalCPUs": 2, "device": "CPU:1"}, marks=pytest.mark.slow),
        ("Mirrored", {"chief": 1}, {**TWO, "crossDeviceOps": "HierarchicalCopy"}),
        pytest.param(
            "Mirrored",
            {"chief": 1},
            {"logicalCPUs": 3, "crossDeviceOps": "ReductionToOneDevice"},
            marks=pytest.mark.slow,
        ),
        ("CentralStorage", {"chief": 1}, TWO),
        pytest.param(
            "MultiWorkerMirrored", {"chief": 1, "worker": 1}, {"communication": "Ring"}, marks=pytest.mark.slow
        ),
    ],
)
def test_synchronous_strategies_report_the_same_numbers(
    tmp_path: Path, undistributed: dict[str, float], strategy: str, counts: dict[str, int], options: dict[str, Any]
) -> None:
    """The loss included: Keras's own fit reports 10.12 for 3.50 under CentralStorage."""
    assert metrics_of(tmp_path, strategy, counts, options) == pytest.approx(undistributed, rel=1e-4)


@pytest.mark.slow  # test_parameter_server.py and the end-to-end tests train under it in every run
@pytest.mark.parametrize("servers", [1, 2])
def test_parameter_server_reaches_the_accuracy(tmp_path: Path, undistributed: dict[str, float], servers: int) -> None:
    """Asynchronous: the numbers differ, what is learnt does not."""
    metrics = metrics_of(tmp_path, "ParameterServer", {"chief": 1, "worker": 2, "ps": servers}, {})
    assert metrics["val_accuracy"] == pytest.approx(undistributed["val_accuracy"], abs=0.06)


def test_a_device_that_is_not_here_is_named(tmp_path: Path) -> None:
    with Cluster(tmp_path, "OneDevice", {"chief": 1}, "train.py", options={"device": "GPU:0"}) as run:
        run.start()
        assert run["chief-0"].exit_code() == 1
        assert "strategyOptions.device 'GPU:0' is not here; this task sees CPU:0" in run["chief-0"].output()


def test_the_traits_without_a_job_are_those_of_the_current_strategy(tmp_path: Path) -> None:
    """A program that no job runs may make a strategy ambient itself."""
    program = """
import tensorflow as tf
from dtjob_trainer.contract.strategy import ALONE, TRAITS
from dtjob_trainer.process.runtime import Runtime

assert Runtime().traits is ALONE
made = {
    "OneDevice": tf.distribute.OneDeviceStrategy("/cpu:0"),
    "Mirrored": tf.distribute.MirroredStrategy(["/cpu:0"]),
    "CentralStorage": tf.distribute.experimental.CentralStorageStrategy(["/cpu:0"]),
}
for name, strategy in made.items():
    with strategy.scope():
        assert Runtime().traits is TRAITS[name], name
"""
    by_hand(program, directory=tmp_path)
