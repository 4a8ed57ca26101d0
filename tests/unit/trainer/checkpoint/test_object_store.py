# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.checkpoint.object_store: no file is renamed where a rename writes it again, and all stays whole.

There is no bucket here: `file://` plays one, and `ram://` is a file system of TensorFlow that is no directory.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from dtjob_trainer.checkpoint import model_file, object_store
from dtjob_trainer.checkpoint.directory import clear_half_written, steps_in
from dtjob_trainer.checkpoint.done import is_done, mark_done
from dtjob_trainer.checkpoint.owner import Owner, read
from dtjob_trainer.checkpoint.retention import BestCheckpoints
from dtjob_trainer.checkpoint.stored import Stored
from dtjob_trainer.checkpoint.writer import Writer, write
from dtjob_trainer.contract.settings import Checkpoint, KeepBest
from dtjob_trainer.contract.task import Task
from dtjob_trainer.errors import CheckpointError
from dtjob_trainer.models import values

TENSORS = {"v": tf.fill([1000], 1.0)}
ROWS = {"v": [values.Rows((1000,), 0, 1000, tf.fill([1000], 1.0))]}


@pytest.fixture
def bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(object_store, "SCHEMES", ("file://",))
    return f"file://{tmp_path}"


@pytest.fixture
def renamed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of files that were renamed."""
    names: list[str] = []
    rename = tf.io.gfile.rename

    def noted(path: str, target: str, **options: Any) -> None:
        names.append(path.rpartition("/")[2])
        rename(path, target, **options)

    monkeypatch.setattr(tf.io.gfile, "rename", noted)
    return names


class Model:
    """One that can be saved."""

    def save(self, path: str) -> None:
        with tf.io.gfile.GFile(path, "w") as file:
            file.write("a model")


def write_all(directory: str) -> None:
    """What a job writes, of each kind."""
    checkpoint = Checkpoint(directory, keep_best=KeepBest("loss", is_highest=False))
    task = Task("test", "default", "uid", "chief", 0, checkpoint=checkpoint)
    owner = Owner(task, lambda **_: None, lambda *_, **__: None)
    owner._write()
    for step in (5, 10):
        write(directory, step, TENSORS, b"{}", max_to_keep=3)
        BestCheckpoints(task.uid, checkpoint).offer(step, {"loss": 0.5})
    model_file.write(Model(), f"{directory}/model.keras", f"{directory}/.saving-model.keras")
    mark_done(task, {"step": 10})
    assert (read(directory) or {})["uid"] == "uid"
    assert is_done(directory, "uid")
    assert steps_in(directory) == [5, 10]


def test_nothing_is_renamed_in_a_bucket(bucket: str, renamed: list[str]) -> None:
    write_all(bucket)
    assert renamed == []


def test_all_is_renamed_elsewhere(tmp_path: Path, renamed: list[str]) -> None:
    """Or the test above would hold of nothing."""
    write_all(f"file://{tmp_path}")
    assert {"ckpt.index", "checkpoint.tmp", "DONE.tmp", "OWNER-uid.tmp", "kept.json.tmp"} <= set(renamed)
    assert ".saving-model.keras" in renamed


def test_pieces_of_tables_are_not_renamed_either(
    bucket: str, renamed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(values, "PIECE_BYTES", 1000)
    write(bucket, 5, ROWS, b"{}", max_to_keep=3)
    stored = Stored(bucket, 5)
    stored.verify()
    assert np.array_equal(stored.array("v"), TENSORS["v"])
    assert renamed == []
    names = set(tf.io.gfile.listdir(bucket))
    assert len(names) > 3
    assert all(name == "checkpoint" or name.startswith("ckpt-5.") for name in names)


def test_the_data_of_an_incomplete_save_is_removed_and_not_used_by_a_later_one(bucket: str) -> None:
    write(bucket, 5, TENSORS, b"{}", max_to_keep=3)
    write(bucket, 10, TENSORS, b"{}", max_to_keep=3)
    index = f"{bucket}/ckpt-10.index"
    tf.io.gfile.remove(index)  # what is there before the index is written
    assert steps_in(bucket) == [5]
    write(bucket, 10, {"v": tf.zeros([1000])}, b"{}", max_to_keep=3)
    assert not Stored(bucket, 10).array("v").any()
    tf.io.gfile.remove(index)
    clear_half_written(bucket)
    assert not tf.io.gfile.glob(f"{bucket}/ckpt-10*")


def test_checkpoints_are_written_and_found_without_a_directory() -> None:
    """`ram://` has no directories of its own, and no file that the operating system knows."""
    directory = "ram://bucket/digits"
    settings = Checkpoint(directory, max_to_keep=1)
    chief = Writer(
        Task("test", "default", "uid", "chief", 0, checkpoint=settings),
        settings,
        lambda **_: None,
        lambda *_, **__: None,
    )
    assert chief.prepare() == []
    for step in (5, 10):
        chief.write(step, TENSORS, {"step": step})
        chief.wait()
    chief.owner.release()
    assert chief.prepare() == [10]
    chief.owner.release()
    reader = tf.compat.v1.train.NewCheckpointReader(f"{directory}/ckpt-10")  # load_checkpoint takes it for a directory
    assert np.array_equal(reader.get_tensor("v"), TENSORS["v"])


def test_the_error_of_an_unregistered_scheme_says_what_to_do() -> None:
    settings = Checkpoint("s3://bucket/digits")
    task = Task("test", "default", "uid", "chief", 0, checkpoint=settings)
    says = r"uri s3://bucket/digits: .* no file system for s3://; import .* tensorflow_io, .* or mount the bucket as"
    for needs in (lambda: Writer(task, settings, print, print), lambda: mark_done(task, {})):
        with pytest.raises(CheckpointError, match=says):
            needs()
    for path in ("/checkpoints", "file:///checkpoints", "gs://bucket/digits"):
        object_store.check(path)


def test_a_scheme_that_the_image_has_registered_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tf.io.gfile, "get_registered_schemes", lambda: ["", "file", "s3"])
    object_store.check("s3://bucket/digits")
