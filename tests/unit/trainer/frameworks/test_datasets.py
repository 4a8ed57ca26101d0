# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.frameworks.datasets: a TensorFlow with other names is refused, and never taken for a safe Dataset."""

from importlib import import_module
from typing import Any

import pytest

from dtjob_trainer.errors import FrameworkError
from dtjob_trainer.frameworks import datasets

tf = pytest.importorskip("tensorflow")


def parallel() -> Any:
    return tf.data.Dataset.range(4).map(lambda x: x, num_parallel_calls=2, deterministic=False)


def test_a_dataset_in_any_order_says_so() -> None:
    assert datasets.is_in_any_order(parallel())


@pytest.mark.parametrize(
    ("name", "ask"),
    [
        ("_deterministic", datasets.is_in_any_order),
        ("_map_func", datasets.map_function),
        ("_inputs", datasets.inputs_of),
        ("_functions", datasets.functions_of),
    ],
)
def test_a_name_that_is_gone_answers_no_question(monkeypatch: pytest.MonkeyPatch, name: str, ask: Any) -> None:
    dataset = parallel()
    ask(dataset)
    if name in vars(dataset):
        del vars(dataset)[name]
    else:
        for kind in type(dataset).__mro__:
            if name in vars(kind):
                monkeypatch.delattr(kind, name)
    with pytest.raises(FrameworkError, match=f"{name}, so dtjob cannot .*; use TensorFlow"):
        ask(dataset)


def test_a_kind_of_dataset_with_another_name_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = parallel()
    monkeypatch.delattr(import_module("tensorflow.python.data.ops.map_op"), "_MapDataset")
    datasets._see_kinds.cache_clear()
    with pytest.raises(FrameworkError, match=r"map_op\._MapDataset, so dtjob cannot see what a Dataset consists of"):
        datasets.kind_of(dataset)
    monkeypatch.undo()
    assert datasets.kind_of(dataset) in datasets.MAPS
