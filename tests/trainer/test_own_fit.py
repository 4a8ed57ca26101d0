# SPDX-License-Identifier: Apache-2.0
"""A model whose class overrides `fit()`: `dt.fit` runs the override, under every strategy."""

from pathlib import Path

import pytest

from tests.trainer.support.harness import Cluster

TWO = {"logicalCPUs": 2}


@pytest.mark.parametrize(
    ("strategy", "counts", "package", "options"),
    [
        ("MultiWorkerMirrored", {"chief": 1, "worker": 1}, "keras", {}),
        ("Mirrored", {"chief": 1}, "tf_keras", TWO),
        pytest.param("Default", {"chief": 1}, "keras", {}, marks=pytest.mark.slow),
        pytest.param("ParameterServer", {"chief": 1, "worker": 1, "ps": 1}, "keras", {}, marks=pytest.mark.slow),
    ],
)
def test_the_override_preprocesses_what_is_trained_on(
    tmp_path: Path, strategy: str, counts: dict[str, int], package: str, options: dict[str, int]
) -> None:
    """Its numbers are those of a model that was given the preprocessed data."""
    with Cluster(tmp_path, strategy, counts, "own_fit.py", package, options=options) as run:
        run.start()
        trains = [task for task in run.tasks if strategy != "ParameterServer" or task == "chief-0"]
        run.expect_success(*trains)
        lines = [line for line in run["chief-0"].output().splitlines() if line.startswith("found ")]
        mine, plain = ([float(number) for number in line.split()[1:]] for line in lines)
        assert len(mine) == 4
        assert mine == pytest.approx(plain, rel=1e-5)


def test_an_override_that_trains_by_itself_is_refused_in_words(tmp_path: Path) -> None:
    with Cluster(tmp_path, "Default", {"chief": 1}, "own_fit.py", "keras", "--alone") as run:
        run.start()
        assert run["chief-0"].exit_code() == 1
        message = "FitError: model: Preprocesses.fit() does not call super().fit(), which trains under dtjob; call it"
        assert message in run["chief-0"].output()
        assert run["chief-0"].status["exception"]["permanent"] is True
