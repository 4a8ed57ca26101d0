# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.checkpoint.done: whose mark ends a run, and one that a power cut has left without its content."""

from pathlib import Path

import pytest

from dtjob_trainer.checkpoint.done import DONE, is_done, mark_done, remove_others_mark
from dtjob_trainer.contract.settings import Checkpoint
from dtjob_trainer.contract.task import Task


@pytest.mark.parametrize("content", [b"", b'{"uid": "uid", "st', b"\0" * 40, b"\xff\xfe", b"[]", b"null"])
def test_a_mark_that_says_nothing_is_none_and_goes(tmp_path: Path, content: bytes) -> None:
    (tmp_path / DONE).write_bytes(content)
    assert not is_done(str(tmp_path), "uid")
    remove_others_mark(str(tmp_path), "uid")
    assert not (tmp_path / DONE).exists()
    remove_others_mark(str(tmp_path), "uid")


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_a_mark_is_that_of_its_own_job_alone(tmp_path: Path, scheme: str) -> None:
    task = Task("test", "default", "uid", "chief", 0, checkpoint=Checkpoint(f"{scheme}{tmp_path}"))
    mark_done(task, {"step": 5})
    assert is_done(f"{scheme}{tmp_path}", "uid")
    assert not is_done(f"{scheme}{tmp_path}", "another")
