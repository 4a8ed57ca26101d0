# SPDX-License-Identifier: Apache-2.0
"""A `fit` within a callback of another one: it is Keras's own in one process, and is refused elsewhere."""

import signal
from pathlib import Path

import pytest

from tests.trainer.support.harness import Cluster

PROBES = [[1, 0.446002], [2, 0.587936], [3, 0.644934], [4, 0.677336]]
"""Epochs of the probe, and its first weight, by epoch of the outer fit: of the same script under plain python."""


def probes(run: Cluster) -> list[list[float]]:
    """What the probes of each epoch came to, by the number of the epoch."""
    lines = [line for line in run["chief-0"].output().splitlines() if line.startswith("probe ")]
    return [[float(number) for number in line.split()[1:]] for line in lines]


@pytest.mark.parametrize(
    ("strategy", "options"),
    [("Default", {}), pytest.param("Mirrored", {"logicalCPUs": 2}, marks=pytest.mark.slow)],
)
def test_a_nested_fit_is_kerass_own_and_the_outer_one_saves_and_resumes(
    tmp_path: Path, strategy: str, options: dict[str, int]
) -> None:
    gate = tmp_path / "gate"
    arguments = ("nested_fit.py", f"--held={gate}")
    with Cluster(tmp_path, strategy, {"chief": 1}, *arguments, options=options, checkpoint={"everyEpochs": 1}) as run:
        run.start()
        run["chief-0"].wait_until(lambda s: s.get("epoch") == 2, "the third epoch")
        run["chief-0"].kill(signal.SIGTERM)
        gate.touch()
        assert run["chief-0"].exit_code() == 143
        found = probes(run)
        assert run["chief-0"].status["checkpoint"]["step"] > 8, "it has saved within the third epoch"
        run.start()
        run.expect_success()
        found += probes(run)
        assert "stage" not in run["chief-0"].status, "there is one call"
        assert not list(run.checkpoints.glob("stage-*"))
    assert [epoch for epoch, *_ in found] == [0, 1, 2, 3]
    for (_, *numbers), expected in zip(found, PROBES, strict=True):
        assert numbers == pytest.approx(expected, rel=1e-5)


def test_a_nested_fit_of_several_tasks_is_refused_in_words(tmp_path: Path) -> None:
    with Cluster(tmp_path, "MultiWorkerMirrored", {"worker": 2}, "nested_fit.py") as run:
        run.start()
        assert run["worker-0"].exit_code() == 1
        message = run["worker-0"].status["message"]
    assert "fit or train was called within a callback" in message
    assert "train the second model after the first" in message
