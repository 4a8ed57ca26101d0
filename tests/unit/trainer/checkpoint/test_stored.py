# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.checkpoint.stored: a checkpoint that goes while it is read. What is read is in `test_parts.py`."""

from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf

from dtjob_trainer.checkpoint import directory
from dtjob_trainer.checkpoint.stored import Stored


def test_a_checkpoint_that_nfs_has_removed_while_it_is_read_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stale(**_: Any) -> None:
        raise tf.errors.AbortedError(None, None, "ckpt-5.index; Stale file handle")

    monkeypatch.setattr(tf.raw_ops, "RestoreV2", stale)
    with pytest.raises(directory.GONE):
        Stored(str(tmp_path), 5)
