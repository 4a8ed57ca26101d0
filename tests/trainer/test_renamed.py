# SPDX-License-Identifier: Apache-2.0
"""A Keras that lacks what dtjob builds on, or does not call it: training ends in words, and no number is wrong."""

from pathlib import Path

import pytest

from tests.trainer.support.harness import Cluster

WORDS = {
    "no scale": "has no keras.src.losses.loss.scale_loss_for_distribution, so dtjob cannot have the loss of one device",
    "another scale": "does not call keras.src.losses.loss.scale_loss_for_distribution to scale a loss, so dtjob",
    "no sum": "has no keras.Optimizer._all_reduce_sum_gradients, so dtjob cannot sum gradients as on one device",
    "another sum": "does not call keras.Optimizer._all_reduce_sum_gradients to sum the gradients of replicas, so dtjob",
    "all names": "trained",
}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What the program prints of each case."""
    directory: Path = tmp_path_factory.mktemp("renamed")
    with Cluster(directory, "Mirrored", {"chief": 1}, "renamed.py", options={"logicalCPUs": 2}) as run:
        run.run()
        lines = run["chief-0"].output().splitlines()
    return {case: line for line in lines for case in WORDS if line.startswith(f"{case}: ")}


@pytest.mark.parametrize("case", WORDS)
def test_a_name_that_is_gone_or_not_called_ends_training_with_the_versions_to_use(
    told: dict[str, str], case: str
) -> None:
    assert WORDS[case] in told[case]
    assert told[case].endswith("; use Keras 3.12 to 3.15") == (WORDS[case] != "trained")
