# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.frameworks.datasets: a TensorFlow with other names is refused, and never taken for a safe Dataset."""

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from dtjob_trainer.errors import FrameworkError
from dtjob_trainer.frameworks import datasets, hooks

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


@pytest.fixture
def own_caches() -> Iterator[None]:
    with hooks.during(datasets.CACHE_FILE, datasets.cache_of_task("job", "worker-1")):
        yield


def test_each_task_has_a_cache_file_of_its_own(tmp_path: Path, own_caches: None) -> None:
    data = tf.data.Dataset.range(3).cache(str(tmp_path / "cache"))
    other = tf.data.Dataset.range(3).cache()
    for _ in range(2):
        assert [*data.as_numpy_iterator()] == [*other.as_numpy_iterator()] == [0, 1, 2]
    assert (tmp_path / "cache.job.worker-1.index").exists()
    assert not (tmp_path / "cache.index").exists()


def test_a_task_that_was_killed_while_it_filled_its_cache_fills_it_anew(tmp_path: Path, own_caches: None) -> None:
    (tmp_path / "cache.job.worker-1_0.lockfile").touch()
    data = tf.data.Dataset.range(3).cache(str(tmp_path / "cache"))
    assert [*data.as_numpy_iterator()] == [0, 1, 2]
