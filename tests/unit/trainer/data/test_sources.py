"""dtjob_trainer.data.sources: what is taken as arrays."""

from __future__ import annotations

from typing import Any

import pytest

np = pytest.importorskip("numpy")
sources = pytest.importorskip("dtjob_trainer.data.sources")
errors = pytest.importorskip("dtjob_trainer.errors")


def test_weights_are_of_the_outputs_of_y() -> None:
    x, w = np.zeros((4, 2)), np.ones(4)
    two = {"a": np.zeros(4), "b": np.zeros(4)}
    refused: list[tuple[Any, Any]] = [
        (two, {"a": w}),
        (two, {"a": w, "c": w}),
        ([w, w], [w]),
        (w, {"a": w}),
        (two, [w, w]),
    ]
    for y, weights in refused:
        with pytest.raises(errors.DataError, match="one for each output of y, or None"):
            sources.as_arrays(x, y, weights, "x")
    taken: list[tuple[Any, Any]] = [(two, {"b": w, "a": None}), ([w, w], (w, None)), (two, w), (w, w)]
    for y, weights in taken:
        sources.as_arrays(x, y, weights, "x")
