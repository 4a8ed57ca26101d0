# SPDX-License-Identifier: Apache-2.0
"""Trains cases of programs/one_device.py under a strategy, and by Keras's own `Model.fit` on one device: both agree."""

import pickle
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from tests.trainer.support.harness import Cluster, by_hand

PROGRAM = "one_device.py"
TOLERANCE = {"mixed_precision": 0.05, "float8": 1e-3}
"""Where numbers have fewer bits than float32."""


@cache
def reference(*arguments: str) -> dict[str, Any]:
    """What Keras's own `Model.fit` makes of the cases that these arguments of the program name, by case."""
    with TemporaryDirectory() as directory:
        out = Path(directory) / "out.pickle"
        by_hand(PROGRAM, "--reference", f"--out={out}", *arguments, directory=Path(directory))
        found: dict[str, Any] = pickle.loads(out.read_bytes())
        return found


def check(
    directory: Path,
    strategy: str,
    counts: Mapping[str, int],
    devices: int,
    cases: str,
    *,
    package: str,
    examples: int,
    **more: Any,
) -> None:
    """Train `cases` (names with commas between them) under a strategy; fails where a number is not one device's.

    `devices`: logical CPUs; 0 leaves the machine's own. `more`: other options of the strategy.
    """
    out = directory / "out.pickle"
    arguments = (f"--examples={examples}", f"--package={package}", f"--cases={cases}")
    options = more | ({"logicalCPUs": devices} if devices else {})
    with Cluster(directory, strategy, counts, PROGRAM, f"--out={out}", *arguments, options=options) as run:
        run.start()
        run.expect_success(*(task for task in run.tasks if strategy != "ParameterServer" or task == "chief-0"))
    found = pickle.loads(out.read_bytes())
    by_keras = reference(*arguments)
    assert set(found) == set(cases.split(","))
    wrong = [line for case, values in found.items() for line in differences(case, by_keras[case], values)]
    assert not wrong, "\n".join(wrong)


def differences(case: str, by_keras: Any, found: Any) -> list[str]:
    """Where what a case came to is not what Keras's own `Model.fit` did, one line for each number or text."""
    tolerance = TOLERANCE.get(case, 1e-6)
    expected, actual = dict(flat(by_keras)), dict(flat(found))
    if expected.keys() != actual.keys():
        return [f"{case}: {', '.join(sorted(expected.keys() ^ actual.keys()))} on one side alone"]
    return [
        f"{case}{path}: {actual[path]} for {value}"
        for path, value in expected.items()
        if not _alike(actual[path], value, tolerance)
    ]


def _alike(actual: Any, expected: Any, tolerance: float) -> bool:
    if expected is None or isinstance(expected, str):
        return bool(actual == expected)
    return bool(np.allclose(actual, expected, rtol=tolerance, atol=tolerance, equal_nan=True))


def flat(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every number, text and array of nested dicts and lists, by its path."""
    if isinstance(value, dict | list | tuple):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, part in items:
            yield from flat(part, f"{path}/{key}")
    else:
        yield path, value
