# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.checkpoint.parts: what is on parameter servers is written in pieces, and read as a whole."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from dtjob_trainer.checkpoint import parts, writer
from dtjob_trainer.checkpoint.directory import SEEN, UNREADABLE, clear_half_written, steps_in
from dtjob_trainer.checkpoint.stored import Stored
from dtjob_trainer.models import values
from dtjob_trainer.models.values import Rows
from tests.unit.trainer.raised import raise_as_tensorflow

TABLE = np.arange(30, dtype=np.float32).reshape(10, 3)
ROW = 12
"""Bytes of a row."""


def shards(*sizes: int) -> list[Rows]:
    """The table in shards of so many rows."""
    firsts = np.cumsum([0, *sizes])
    return [
        Rows((10, 3), int(first), size, tf.constant(TABLE[first : first + size]))
        for first, size in zip(firsts, sizes, strict=False)
    ]


def written(
    directory: Path,
    piece: int,
    tensors: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    servers: tuple[str, ...] = (),
) -> Stored:
    monkeypatch.setattr(values, "PIECE_BYTES", piece)
    writer.write(str(directory), 5, tensors, b"{}", 3, by_servers=bool(servers))
    stored = Stored(str(directory), 5, servers)
    stored.verify()
    return stored


@pytest.mark.parametrize("servers", [(), ("CPU:0",)])
@pytest.mark.parametrize(("piece", "files"), [(1000, 1), (5 * ROW, 4), (3 * ROW, 5), (1, 12)])
def test_shards_are_read_as_one_table_and_in_other_shards(
    tmp_path: Path, piece: int, files: int, servers: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside the files of shards there is one for what is in memory, and one piece for the count."""
    count = [Rows((), 0, 1, tf.constant(7, tf.int64))]
    tensors = {"table": shards(6, 4), "count": count, "w": tf.constant([1.0, 2.0])}
    stored = written(tmp_path, piece, tensors, monkeypatch, servers)
    assert len(list(tmp_path.glob("ckpt-5.data-*"))) == files
    assert np.array_equal(stored.array("table"), TABLE)
    assert stored.array("count") == 7
    assert stored.array("w").tolist() == [1.0, 2.0]
    assert stored.forms == {"count": ((), "int64"), "table": ((10, 3), "float32"), "w": ((2,), "float32")}
    for other in shards(3, 3, 4):
        (part,) = stored.read(["table"], [other.slice])
        assert np.array_equal(part, other.tensor)


def test_a_save_of_the_same_step_in_other_files_replaces_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, 3 * ROW, {"table": shards(10)}, monkeypatch)
    stored = written(tmp_path, 1000, {"table": shards(10)}, monkeypatch)
    assert np.array_equal(stored.array("table"), TABLE)
    assert len(list(tmp_path.glob("ckpt-5.data-*"))) == 1
    assert steps_in(str(tmp_path)) == [5]
    assert not list(tmp_path.glob("*_temp"))


def test_a_large_tensor_of_this_process_is_in_pieces_of_one_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its first rows can be read where the last ones are damaged: TensorFlow reads a whole piece to give a part."""
    stored = written(tmp_path, 5 * ROW, {"table": tf.constant(TABLE)}, monkeypatch)
    assert np.array_equal(stored.array("table"), TABLE)
    (data,) = tmp_path.glob("ckpt-5.data-*")
    content = bytearray(data.read_bytes())
    last = content.index(TABLE[9].tobytes())
    content[last] ^= 1
    data.write_bytes(content)
    (part,) = stored.read(["table"], [Rows((10, 3), 1, 2).slice])
    assert np.array_equal(part, TABLE[1:3])
    with pytest.raises(UNREADABLE):
        stored.verify()


def test_a_server_that_reads_what_the_chief_writes_and_answers_has_the_directory(tmp_path: Path) -> None:
    assert parts.is_shared(str(tmp_path), [parts.HERE, parts.HERE])
    assert not parts.is_shared(str(tmp_path), [])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("operation", ["read_file", "write_file"])
@pytest.mark.parametrize(
    "error", [tf.errors.NotFoundError, tf.errors.PermissionDeniedError, tf.errors.UnimplementedError]
)
def test_a_server_that_cannot_read_or_write_there_has_it_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, operation: str, error: Any
) -> None:
    def fail(*_: Any) -> None:
        raise error(None, None, "not here")

    monkeypatch.setattr(tf.io, operation, fail)
    assert not parts.is_shared(str(tmp_path), [parts.HERE])
    assert not list(tmp_path.iterdir())


def test_a_server_whose_answers_go_elsewhere_has_it_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tf.io, "write_file", lambda *_: None)
    assert not parts.is_shared(str(tmp_path), [parts.HERE])


def test_a_lost_parameter_server_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(*_: Any) -> None:
        raise_as_tensorflow(tf.errors.UnavailableError(None, None, "Socket closed"))

    monkeypatch.setattr(tf.io, "read_file", lost)
    with pytest.raises(tf.errors.UnavailableError):
        parts.is_shared(str(tmp_path), [parts.HERE])


def test_the_test_file_of_a_killed_chief_is_removed(tmp_path: Path) -> None:
    (tmp_path / f"{SEEN}0123").touch()
    clear_half_written(str(tmp_path))
    assert not list(tmp_path.iterdir())
