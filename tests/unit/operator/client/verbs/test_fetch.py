# SPDX-License-Identifier: Apache-2.0
"""The program of the helper pod lists and sends what was asked for."""

import io
import json
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from dtjob.client.verbs.fetch import PROGRAM, WORDS, models


@pytest.fixture
def top(tmp_path: Path) -> Path:
    for name in (
        "model.keras",
        "DONE",
        "ckpt-5.index",
        "ckpt-5.data-0",
        "checkpoint",
        "events/train/e.v2",
        "logs/attempt-0.u.log",
        "best/model/a.txt",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    return tmp_path


def sent(top: Path, mode: str, *patterns: str) -> bytes:
    command = [sys.executable, "-c", PROGRAM, f"{top}/", mode, *patterns]
    return subprocess.run(command, capture_output=True, check=True).stdout


@pytest.mark.parametrize(
    ("patterns", "names"),
    [
        (("model.keras",), ["model.keras"]),
        (WORDS["checkpoints"], ["checkpoint", "ckpt-5.data-0", "ckpt-5.index"]),
        (WORDS["events"], ["events/train/e.v2"]),
        (WORDS["logs"], ["logs/attempt-0.u.log"]),
        (("best/",), ["best/model/a.txt"]),
        (("none",), []),
    ],
)
def test_files_and_folders_are_chosen_by_pattern(top: Path, patterns: tuple[str, ...], names: list[str]) -> None:
    with tarfile.open(fileobj=io.BytesIO(sent(top, "tar", *patterns))) as archive:
        assert archive.getnames() == names


def test_a_model_is_what_is_neither_checkpoint_nor_event(top: Path) -> None:
    files = json.loads(sent(top, "list"))
    assert files["model.keras"] == len("model.keras")
    assert models(files) == ["best", "model.keras"]
