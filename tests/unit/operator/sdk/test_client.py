# SPDX-License-Identifier: Apache-2.0
"""A function becomes a script that runs alone."""

import subprocess
import sys
from pathlib import Path

import pytest

from dtjob.bad_input import BadInput
from dtjob.sdk.client import as_script


def train(epochs: int, name: str = "a"):
    import math

    print(epochs, name, math.floor(1.5))


def test_the_script_calls_the_function_with_its_arguments(tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text(as_script(train, {"epochs": 3, "name": "it's"}))
    done = subprocess.run([sys.executable, file], capture_output=True, text=True, check=True)
    assert done.stdout == "3 it's 1\n"


def test_a_function_inside_another_is_dedented(tmp_path: Path) -> None:
    def inner():
        print("inner")

    file = tmp_path / "inner.py"
    file.write_text(as_script(inner, {}))
    assert subprocess.run([sys.executable, file], capture_output=True, text=True, check=True).stdout == "inner\n"


def test_a_function_that_cannot_run_alone_is_refused() -> None:
    rate = 0.1

    def uses_rate():
        return rate

    with pytest.raises(BadInput, match="uses rate of the function around it"):
        as_script(uses_rate, {})
    with pytest.raises(BadInput, match="defined with def"):
        as_script(lambda: 1, {})
    with pytest.raises(BadInput, match="defined with def"):
        as_script(print, {})
    with pytest.raises(BadInput, match="arguments must be numbers"):
        as_script(train, {"epochs": object()})
