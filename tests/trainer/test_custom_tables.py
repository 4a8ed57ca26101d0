# SPDX-License-Identifier: Apache-2.0
"""Tables of embeddings in a custom loop: under several replicas they become what they become on one device."""

import re
from pathlib import Path

import pytest

from tests.trainer.support.harness import Cluster

TWO = {"logicalCPUs": 2}
DOUBT = "cannot be told, so optimizers other than SGD may train it otherwise than one device"


def trained(directory: Path, strategy: str, *arguments: str) -> tuple[dict[str, float], str]:
    """The sum of squares of each weight at the end, and the log."""
    counts, options = ({"worker": 2}, {}) if strategy == "MultiWorkerMirrored" else ({"chief": 1}, {})
    options = TWO if strategy in ("Mirrored", "CentralStorage") else options
    with Cluster(directory, strategy, counts, "custom_tables.py", *arguments, options=options) as run:
        run.run()
        output = next(iter(run.members.values())).output()
    squares = {name: float(value) for name, value in re.findall(r"squares (\S+) (\S+)", output)}
    assert len(squares) == 7, output
    return squares, output


@pytest.mark.parametrize(
    ("strategy", "arguments"),
    [
        ("Mirrored", ()),
        *(
            pytest.param(strategy, arguments, marks=pytest.mark.slow)
            for strategy, arguments in (
                ("MultiWorkerMirrored", ()),
                ("CentralStorage", ()),
                ("MultiWorkerMirrored", ("--package=tf_keras",)),
                ("Mirrored", ("--package=tf_keras", "--optimizer=RMSprop")),
                ("Mirrored", ("--optimizer=Adagrad",)),
            )
        ),
    ],
)
def test_tables_become_one_devices(tmp_path: Path, strategy: str, arguments: tuple[str, ...]) -> None:
    right, _ = trained(tmp_path / "one", "Default", *arguments)
    found, output = trained(tmp_path / "several", strategy, *arguments)
    assert found == pytest.approx(right, rel=1e-5)
    assert DOUBT not in output


@pytest.mark.slow
def test_a_dataset_that_the_program_has_distributed_itself_is_looked_at_too(tmp_path: Path) -> None:
    """Its batches come in an order of their own, so that one device's numbers are those of one replica."""
    found, output = trained(tmp_path / "two", "Mirrored", "--data=distributed")
    right, _ = trained(tmp_path / "one", "OneDevice", "--data=distributed")
    assert found == pytest.approx(right, rel=1e-5)
    assert DOUBT not in output


def test_look_ups_that_cannot_be_traced_are_named_once(tmp_path: Path) -> None:
    _, output = trained(tmp_path, "Mirrored", "--hidden")
    (line,) = [line for line in output.splitlines() if DOUBT in line]
    assert all(name in line for name in ("words", "places", "kept", "shared", "once"))
    _, alone = trained(tmp_path / "one", "Default", "--hidden")
    assert DOUBT not in alone
