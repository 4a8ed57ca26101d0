# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.checkpoint.stored: what is read of a checkpoint, and what damage is."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from dtjob_trainer.checkpoint import directory
from dtjob_trainer.checkpoint.stored import Stored
from dtjob_trainer.checkpoint.writer import write


def test_variables_are_read_one_by_one_and_in_parts(tmp_path: Path) -> None:
    table = np.arange(12, dtype=np.float32).reshape(6, 2)
    write(str(tmp_path), 5, {"table": tf.constant(table), "step": tf.constant(5, tf.int64)}, b'{"step": 5}', 3)
    stored = Stored(str(tmp_path), 5)
    assert stored.state == {"step": 5}
    assert stored.forms == {"step": ((), "int64"), "table": ((6, 2), "float32")}
    assert np.array_equal(stored.array("table"), table)
    (part,) = stored.read(["table"], ["6 2 2,3:-"])
    assert np.array_equal(part, table[2:5])


def test_damage_is_found_before_anything_is_taken(tmp_path: Path) -> None:
    write(str(tmp_path), 5, {"v": tf.fill([1000], 1.0)}, b"{}", 3)
    data = tmp_path / f"ckpt-5{directory.DATA_SUFFIX}"
    content = bytearray(data.read_bytes())
    content[len(content) // 2] ^= 1
    data.write_bytes(content)
    stored = Stored(str(tmp_path), 5)
    with pytest.raises(directory.UNREADABLE):
        stored.verify()


def test_a_checkpoint_that_nfs_has_removed_while_it_is_read_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stale(**_: Any) -> None:
        raise tf.errors.AbortedError(None, None, "ckpt-5.index; Stale file handle")

    monkeypatch.setattr(tf.raw_ops, "RestoreV2", stale)
    with pytest.raises(directory.GONE):
        Stored(str(tmp_path), 5)
