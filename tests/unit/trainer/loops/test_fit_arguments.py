# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.loops.fit_arguments: what Model.fit's numbers mean, and that `fit` has all of its arguments."""

import ast
import importlib.util
from pathlib import Path
from typing import Any

import pytest

from dtjob_trainer.errors import FitError
from dtjob_trainer.loops.fit_arguments import LeftAside, Numbers, Queue, schedule

ROOT = Path(__file__).parents[4]
FIT = ROOT / "trainer_image" / "dtjob_trainer" / "loops" / "fit.py"


def signature(file: Path) -> list[tuple[str, Any]]:
    """The positional arguments of the function or method `fit` in `file` with their defaults, but for the model."""
    (found,) = (n for n in ast.walk(ast.parse(file.read_text())) if isinstance(n, ast.FunctionDef) and n.name == "fit")
    names = [each.arg for each in found.args.args][1:]
    defaults = [ast.literal_eval(each) for each in found.args.defaults]
    assert len(names) == len(defaults)
    return list(zip(names, defaults, strict=True))


def of_package(package: str, *path: str) -> list[tuple[str, Any]]:
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        pytest.skip(f"{package} is not installed")
    return signature(Path(spec.submodule_search_locations[0], *path))


def test_fit_has_the_arguments_of_keras_in_their_order_with_their_defaults() -> None:
    of_keras = of_package("keras", "src", "backend", "tensorflow", "trainer.py")
    assert signature(FIT)[: len(of_keras)] == of_keras


def test_fit_has_the_arguments_of_tf_keras_in_their_order_with_their_defaults() -> None:
    assert signature(FIT) == of_package("tf_keras", "src", "engine", "training.py")


def numbers(**given: Any) -> Numbers:
    none = dict.fromkeys(("batch_size", "steps_per_epoch", "validation_steps", "validation_batch_size"))
    return Numbers(**{**none, "epochs": 1, "initial_epoch": 0, **given})


def told(aside: LeftAside) -> list[str]:
    lines: list[str] = []
    aside.tell(lambda line, level: lines.append(f"{level}: {line}"))
    return lines


def test_no_warning_is_printed_if_all_arguments_have_an_effect() -> None:
    aside = LeftAside(validated=True)
    given = numbers(batch_size=8, epochs=5, validation_steps=2, validation_batch_size=4)
    assert given.read("tf_keras", aside) == given
    assert schedule(2, aside)(1)
    Queue(workers=3).check("tf_keras", True, aside)
    assert not told(aside)


def test_arguments_without_effect_are_named_in_one_line() -> None:
    aside = LeftAside(validated=False)
    given = numbers(batch_size=0, epochs=2, initial_epoch=2, validation_steps=3)
    assert given.read("tf_keras", aside).batch_size is None
    schedule([2], aside)
    Queue(workers=3).check("tf_keras", False, aside)
    (line,) = told(aside)
    assert line.startswith("warning: without effect: ")
    for words in ("batch_size=0 (as if", "epochs=2 (training begins at epoch 2", "validation_steps (", "workers (only"):
        assert words in line
    assert "validation_freq (there is no validation_data)" in line


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"epochs": 2.0}, r"epochs=2\.0 must be a whole number, as int\(2\.0\)"),
        ({"epochs": None}, "epochs=None must be a whole number"),
        ({"batch_size": "32"}, "batch_size='32' must be a whole number"),
        ({"batch_size": -1}, "batch_size=-1 must be at least 1"),
        ({"initial_epoch": -1}, "initial_epoch=-1 must not be negative"),
    ],
)
def test_numbers_that_are_none_are_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(FitError, match=words):
        numbers(**given).read("tf_keras", LeftAside(validated=True))


def test_workers_are_refused_for_keras_3_which_has_them_elsewhere() -> None:
    with pytest.raises(FitError, match=r"workers is no argument of Keras 3's Model\.fit; give it to the PyDataset"):
        Queue(workers=3).check("keras", False, LeftAside(validated=True))


@pytest.mark.parametrize(
    ("freq", "validated"),
    [
        (1, [0, 1, 2, 3, 4, 5]),
        (2, [1, 3, 5]),
        (4, [3]),
        ([1, 4, 99], [0, 3]),
        ((6,), [5]),
        (range(2, 4), [1, 2]),
        ([], []),
    ],
)
def test_validation_is_after_the_epochs_that_keras_validates_after(freq: Any, validated: list[int]) -> None:
    validates = schedule(freq, LeftAside(validated=True))
    assert [epoch for epoch in range(6) if validates(epoch)] == validated


@pytest.mark.parametrize("freq", [0, -1, 1.5, "2", None])
def test_a_validation_freq_that_is_no_frequency_is_refused(freq: Any) -> None:
    with pytest.raises(FitError, match="validation_freq="):
        schedule(freq, LeftAside(validated=True))
