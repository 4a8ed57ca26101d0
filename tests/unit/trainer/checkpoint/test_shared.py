# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.checkpoint.shared: whether parameter servers have the chief's directory."""

from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf

from dtjob_trainer.checkpoint.directory import SEEN, clear_half_written
from dtjob_trainer.checkpoint.shared import is_shared
from tests.unit.trainer.raised import raise_as_tensorflow

HERE = "CPU:0"


def test_a_server_that_reads_what_the_chief_writes_and_answers_has_the_directory(tmp_path: Path) -> None:
    assert is_shared(str(tmp_path), [HERE, HERE])
    assert not is_shared(str(tmp_path), [])
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
    assert not is_shared(str(tmp_path), [HERE])
    assert not list(tmp_path.iterdir())


def test_a_server_whose_answers_go_elsewhere_has_it_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tf.io, "write_file", lambda *_: None)
    assert not is_shared(str(tmp_path), [HERE])


def test_a_lost_parameter_server_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(*_: Any) -> None:
        raise_as_tensorflow(tf.errors.UnavailableError(None, None, "Socket closed"))

    monkeypatch.setattr(tf.io, "read_file", lost)
    with pytest.raises(tf.errors.UnavailableError):
        is_shared(str(tmp_path), [HERE])


def test_the_test_file_of_a_killed_chief_is_removed(tmp_path: Path) -> None:
    (tmp_path / f"{SEEN}0123").touch()
    clear_half_written(str(tmp_path))
    assert not list(tmp_path.iterdir())
