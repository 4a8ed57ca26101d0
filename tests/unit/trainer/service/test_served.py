# SPDX-License-Identifier: Apache-2.0
"""Datasets over tf.data service: which ones data workers make, each example once, and which ones they do not."""

import contextlib
import os
import socket
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from dtjob_trainer.contract.strategy import TRAITS
from dtjob_trainer.contract.task import DATA_SERVICE, Task
from dtjob_trainer.data.batches import Place, Source, Wanted
from dtjob_trainer.errors import DataError
from dtjob_trainer.frameworks import datasets
from dtjob_trainer.loops.fit_data import FitData
from dtjob_trainer.service import served, servers
from dtjob_trainer.service.served import over_data_service, source_of

ROOT = Path(__file__).parents[4]
N = 60
ALONE = Place(0, 1, 1)


@pytest.fixture(scope="module", autouse=True)
def service() -> Iterator[None]:
    """A dispatcher and two data workers in this process."""
    with contextlib.ExitStack() as held:
        ports = [held.enter_context(socket.create_server(("", 0))).getsockname()[1] for _ in range(3)]
    os.environ[DATA_SERVICE] = f"grpc://localhost:{ports[0]}"
    servers.dispatch(Task("job", "ns", "uid", "chief", 0, data_service=f"localhost:{ports[0]}"))
    service = tf.data.experimental.service
    workers = [
        service.WorkerServer(service.WorkerConfig(f"localhost:{ports[0]}", f"localhost:{port}", port, "grpc", 100))
        for port in ports[1:]
    ]
    yield
    del os.environ[DATA_SERVICE]
    del workers
    servers._dispatchers.clear()


@pytest.fixture(scope="module")
def names(tmp_path_factory: Any) -> list[str]:
    """Six files of ten numbers each."""
    folder: Path = tmp_path_factory.mktemp("records")
    found = []
    for number in range(6):
        found.append(str(folder / f"{number}.tfrecord"))
        with tf.io.TFRecordWriter(found[-1]) as writer:
            for example in range(10 * number, 10 * number + 10):
                writer.write(str(example).encode())
    return found


def number(text: Any) -> Any:
    return tf.strings.to_number(text, tf.int64)


def given(source: Source, epoch: int = 0) -> list[int]:
    """The examples of an epoch, as the source gives them to a task that trains alone."""
    return [int(value) for batch in source.epoch(epoch, 0) for value in np.ravel(batch.inputs[0])]


def of_files(names: list[str]) -> dict[str, Any]:
    """Datasets of the numbers from 0 to N, as pages of docs write them."""
    slices, records = tf.data.Dataset.from_tensor_slices(names), tf.data.TFRecordDataset
    return {
        "range": tf.data.Dataset.range(N).shuffle(N).map(lambda x: x),
        "records": records(names).map(number, tf.data.AUTOTUNE).shuffle(8),
        "records of a list": records(slices.shuffle(6)).map(number),
        "interleave": slices.shuffle(6).interleave(records).map(number),
        "flat_map": slices.flat_map(records).filter(lambda text: tf.strings.length(text) > 0).map(number).prefetch(2),
        "list_files": tf.data.Dataset.list_files(f"{Path(names[0]).parent}/*").interleave(records, 2).map(number),
    }  # fmt: skip


@pytest.mark.parametrize("kind", ["range", "records", "records of a list", "interleave", "flat_map", "list_files"])
def test_each_epoch_has_each_example_once_and_an_order_of_its_own(names: list[str], kind: str) -> None:
    source, said = source_of(of_files(names)[kind].batch(8).prefetch(1), Wanted(), ALONE)
    assert source is not None
    assert said == served.REMARK
    epochs = [given(source, epoch) for epoch in range(2)]
    assert [sorted(epoch) for epoch in epochs] == [list(range(N))] * 2
    assert epochs[0] != epochs[1]
    assert not source.exact


def test_tasks_share_the_examples_of_each_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = tf.data.Dataset.range(N).map(lambda x: x).batch(8)
    tasks = []
    for shard in range(2):
        monkeypatch.setattr(served, "_names", iter([100]))  # as in two processes
        tasks.append(source_of(dataset, Wanted(), Place(shard, 2, 2))[0])
    parts = [iter(task.epoch(0, 0)) for task in tasks if task]
    found: Counter[int] = Counter()
    while parts:
        for part in tuple(parts):
            if (batch := next(part, None)) is None:
                parts.remove(part)
            else:
                assert int(batch.count) <= 4
                found.update(int(value) for value in np.ravel(batch.inputs[0]))
    assert found == Counter(range(N))


SERVED = tf.data.Dataset.range(N).map(lambda x: x)
PYTHON = SERVED.map(lambda x: tf.numpy_function(lambda y: y, [x], tf.int64))
VARIABLE = tf.Variable(1, dtype=tf.int64)
ALL = "needs all elements"
"""By the row of the table in docs/training/data.md."""
REFUSED = {
    "`take()`": (SERVED.take(9).batch(8), f"take() {ALL}"),
    "`skip()`": (SERVED.skip(9).batch(8), f"skip() {ALL}"),
    "`enumerate()`": (SERVED.enumerate().batch(8), f"zip() {ALL}"),
    "`zip()`": (tf.data.Dataset.zip((SERVED, SERVED)).batch(8), f"zip() {ALL}"),
    "`cache()`": (SERVED.cache().batch(8), f"cache() {ALL}"),
    "`repeat()`": (SERVED.repeat(2).batch(8), f"repeat() {ALL}"),
    "`batch()` before the last `batch()`": (SERVED.batch(2).unbatch().batch(8), f"unbatch() {ALL}"),
    "`map()` after `batch()`": (SERVED.batch(8).map(lambda x: x), "let batch() come last"),
    "Python code (`py_function`, `numpy_function`)": (PYTHON.batch(8), "it calls Python code"),
    "a variable or table in a function": (SERVED.map(lambda x: x + VARIABLE).batch(8), "reads a variable or a table"),
    "no `map()`, nor another function": (tf.data.Dataset.range(N).batch(8), "there is no map()"),
    "more than 16 MiB of arrays at the beginning": (
        tf.data.Dataset.from_tensor_slices(np.zeros((2**22 + 1,), np.float32)).map(lambda x: x).batch(8),
        "it begins with 16 MiB of arrays",
    ),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_other_datasets_are_read_in_the_training_pod_and_the_log_says_why(kind: str) -> None:
    dataset, why = REFUSED[kind]
    source, said = source_of(dataset, Wanted(), ALONE)
    assert source is None
    assert said.startswith("data workers do not make the examples, because ")
    assert why in said


def rows_of(heading: str) -> list[str]:
    """The rows of the table on the page of data workers that has this heading, by their first column."""
    table = (ROOT / "docs/training/data.md").read_text().partition(f"| {heading} |")[2].partition("\n\n")[0]
    return [line.split("|")[1].strip() for line in table.splitlines()[2:]]


def test_the_page_lists_what_data_workers_do_not_make() -> None:
    assert sorted(rows_of("what is in the Dataset")) == sorted(REFUSED)


LOST = (
    "trainer/test_lost_data_workers.py",
    "an_epoch_has_the_documented_examples_when_data_workers_are_lost_or_come_late",
)
RESTARTED = (
    "trainer/test_data_workers.py",
    "epochs_in_which_data_workers_or_tasks_are_killed_have_the_documented_examples",
)
CASES = {
    "nothing fails": (
        "unit/trainer/service/test_served.py",
        "each_epoch_has_each_example_once_and_an_order_of_its_own",
    ),
    "a data worker is killed": LOST,
    "a data worker stays away": LOST,
    "the chief's training process is killed": RESTARTED,
    "training restarts for another reason": RESTARTED,
    "`data.replicas` changes": LOST,
}
"""The tests of the rows that say which examples an epoch has."""


def test_each_case_on_the_page_has_a_test() -> None:
    assert rows_of("case") == list(CASES)
    for file, name in CASES.values():
        assert f"def test_{name}(" in (ROOT / "tests" / file).read_text()


def test_no_data_worker_shuffles_the_beginning_of_a_dataset() -> None:
    """It would take all names of files at once, and lose them if it is killed."""
    *parts, first = served.parts_of(tf.data.Dataset.range(N).shuffle(N).map(lambda x: x).shuffle(4))
    made = datasets.made_again(parts, first, 1)
    kinds = list(map(datasets.kind_of, served.parts_of(made)))
    assert kinds.count(datasets.SHUFFLE) == 1
    assert kinds[0] == datasets.SHUFFLE
    rows = tf.data.Dataset.from_tensor_slices({"name": ["a", "b", "c"], "row": [[1, 2], [3, 4], [5, 6]]})
    orders = [list(datasets.in_new_order(rows, seed).as_numpy_iterator()) for seed in range(6)]
    assert len({tuple(row["name"] for row in order) for order in orders}) > 1
    assert all(sorted(int(row["row"][0]) for row in order) == [1, 3, 5] for order in orders)
    steps = tf.data.Dataset.range(3, 30, 5, output_type=tf.int32)
    assert sorted(datasets.in_new_order(steps, 1).as_numpy_iterator()) == [3, 8, 13, 18, 23, 28]
    assert datasets.in_new_order(steps, 1).element_spec == steps.element_spec
    sparse = tf.data.Dataset.from_tensor_slices(tf.sparse.from_dense([[0, 1], [2, 0]]))
    assert len(list(datasets.in_new_order(sparse, 1))) == 2


def test_a_program_chooses_the_place() -> None:
    dataset = over_data_service(SERVED)
    assert sorted(int(value) for value in dataset) == list(range(N)), "in a loop of its own"
    source, _ = source_of(dataset.map(lambda x: 2 * x).batch(8), Wanted(), ALONE)
    assert source is not None
    assert sorted(given(source)) == list(range(0, 2 * N, 2))
    with pytest.raises(DataError, match="over_data_service: take"):
        over_data_service(SERVED.take(9))
    with pytest.raises(DataError, match=r"x: after over_data_service, take\(\) follows"):
        source_of(dataset.take(9).batch(8), Wanted(), Place(0, 2, 2))
    with pytest.raises(DataError, match=r"x: after over_data_service, zip\(\) follows"):
        source_of(tf.data.Dataset.zip((dataset, dataset)).batch(8), Wanted(), Place(0, 2, 2))


def test_batches_of_fewer_examples_than_tasks_are_read_in_the_training_pods() -> None:
    source, said = source_of(SERVED.batch(1), Wanted(), Place(0, 2, 2))
    assert source is None
    assert "batch(1) has fewer examples than the 2 tasks" in said


def fit_data(**here: Any) -> FitData:
    """The data of a `fit` in a job of one task, which logs as `here` says."""
    group: Any = SimpleNamespace(index=0, tasks=1, replicas=1)
    trained: Any = SimpleNamespace(scales_itself=False, package="keras")
    numbers: Any = SimpleNamespace(steps_per_epoch=None, batch_size=None)
    given: Any = SimpleNamespace()
    runtime: Any = SimpleNamespace(traits=TRAITS["Default"], **here)
    return FitData(runtime, group, trained, numbers, given, given, seed=0)


def test_data_workers_that_have_nothing_to_do_are_warned_of() -> None:
    logged, warned = list[str](), list[str]()
    data = fit_data(log=logged.append, warn=warned.append)
    data._source(SERVED.batch(8), None, None, Wanted())
    assert (logged, warned) == ([f"x: {served.REMARK}"], [])
    data._source(SERVED.take(9).batch(8), None, None, Wanted())
    assert len(logged) == 1
    assert warned[0].startswith("x: data workers do not make the examples, because take() needs all elements")


def test_targets_beside_a_dataset_are_refused_as_in_a_job_without_data_workers() -> None:
    data = fit_data(log=print)
    for more in ((np.zeros(N), None), (None, np.zeros(N))):
        with pytest.raises(DataError, match="brings its own targets and weights"):
            data._source(SERVED.batch(8), *more, Wanted())


def test_validation_and_jobs_without_data_workers_are_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    assert source_of(SERVED.batch(8), Wanted(alike=True), ALONE) == (None, "")
    monkeypatch.delenv(DATA_SERVICE)
    assert source_of(SERVED.batch(8), Wanted(), ALONE) == (None, "")
    assert over_data_service(SERVED) is SERVED
