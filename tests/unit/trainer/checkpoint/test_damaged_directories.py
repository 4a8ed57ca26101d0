# SPDX-License-Identifier: Apache-2.0
"""A checkpoint directory that others and broken disks have changed, as Hypothesis makes it up.

A run begins with a whole checkpoint, with none if there is none, or with words about it.
"""

import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from dtjob_trainer.checkpoint import writer
from dtjob_trainer.checkpoint.directory import DATA_SUFFIX, INDEX
from dtjob_trainer.checkpoint.saves import Saves
from dtjob_trainer.contract.settings import Checkpoint
from dtjob_trainer.contract.task import Task
from dtjob_trainer.errors import CheckpointError
from tests.unit.fuzzed import fuzzed

STEPS = (5, 10, 15)
FILES = [f"ckpt-{step}{end}" for step in STEPS for end in (DATA_SUFFIX, INDEX)]
Damage = Callable[[Path], None]


def cut(name: str, part: float) -> Damage:
    """The file ends early."""
    return lambda there: _rewrite(there / name, lambda was: was[: int(part * len(was))])


def flip(name: str, part: float) -> Damage:
    """One bit of the file is another."""
    return lambda there: _rewrite(
        there / name, lambda was: bytes(byte ^ (at == int(part * (len(was) - 1))) for at, byte in enumerate(was))
    )


def fill(name: str, content: bytes) -> Damage:
    """The file, which may be another's, has this content."""
    return lambda there: _rewrite(there / name, lambda _: content)


def swap(one: str, other: str) -> Damage:
    """Two files have each other's names."""

    def act(there: Path) -> None:
        if (there / one).is_file() and (there / other).is_file() and one != other:
            (there / one).rename(there / "between")
            (there / other).rename(there / one)
            (there / "between").rename(there / other)

    return act


def remove(name: str) -> Damage:
    """The file is gone."""
    return lambda there: (there / name).unlink(missing_ok=True)


def save_is_left(step: int, of: int) -> Damage:
    """A killed process has left a save of which the data has its name already."""

    def act(there: Path) -> None:
        left = there / f"ckpt-{step}_temp"
        left.mkdir(exist_ok=True)
        if (there / f"ckpt-{of}{INDEX}").is_file():
            shutil.copy(there / f"ckpt-{of}{INDEX}", left / f"ckpt{INDEX}")

    return act


def _rewrite(file: Path, change: Callable[[bytes], bytes]) -> None:
    file.write_bytes(change(file.read_bytes() if file.is_file() else b""))


files, parts = st.sampled_from(FILES), st.floats(0, 1)
foreign = st.sampled_from((
    *FILES, "ckpt-20.index", "ckpt-20.data-00000-of-00001", "ckpt-5.data-00001-of-00002", "checkpoint", "DONE", "OWNER",
    ".saving-x", ".dtjob-seen-x", "ckpt-.index", "ckpt-٣.index", "model.keras", "between", "ckpt-1e3.index",
))  # fmt: skip
damages = st.one_of(
    st.builds(cut, files, parts),
    st.builds(flip, files, parts),
    st.builds(swap, files, files),
    st.builds(remove, files),
    st.builds(fill, foreign, st.binary(max_size=60) | st.just(b"{}")),
    st.builds(save_is_left, st.sampled_from((*STEPS, 20)), st.sampled_from(STEPS)),
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three checkpoints, each with its step as the value of all its variables."""
    directory = tmp_path_factory.mktemp("whole")
    for step in STEPS:
        value = {"v": tf.fill([50], float(step)), "w": tf.constant(step, tf.int64)}
        writer.write(str(directory), step, value, f'{{"step": {step}}}'.encode(), max_to_keep=3)
    return directory


def spared(here: Path, whole: Path) -> list[int]:
    """The steps of which both files have their bytes as before."""

    def same(name: str) -> bool:
        return (here / name).is_file() and (here / name).read_bytes() == (whole / name).read_bytes()

    return [step for step in STEPS if same(f"ckpt-{step}{DATA_SUFFIX}") and same(f"ckpt-{step}{INDEX}")]


@fuzzed(40)
@given(damaged=st.lists(damages, min_size=1, max_size=3))
def test_a_run_begins_with_a_whole_checkpoint_or_says_why_not(whole: Path, damaged: list[Damage]) -> None:
    """Never with one whose parts are not of one save, nor with an older one or none while a newer one is whole."""
    here = whole.parent / "here"
    shutil.rmtree(here, ignore_errors=True)
    shutil.copytree(whole, here)
    for damage in damaged:
        damage(here)
    left = spared(here, whole)
    settings = Checkpoint(str(here))
    task = Task("test", "default", "uid", "chief", 0, checkpoint=settings)
    saves: Any = SimpleNamespace(_here=SimpleNamespace(task=task, log=lambda *_, **__: None))
    found, error = None, None
    writing = writer.Writer(task, settings, lambda **_: None, print)
    try:
        found = Saves._newest(saves, writing)
    except CheckpointError as raised:
        error = str(raised)
    finally:
        writing.owner.release()
    assert spared(here, whole) == left, "a whole checkpoint is gone"
    if error is not None:
        assert str(here) in error
        assert not (left and "none of its" in error), f"{left} can be read: {error}"
    elif left:
        assert found is not None, f"training begins anew beside {left}"
        assert int(found.name.rpartition("-")[2]) >= left[-1], f"{found.name} is older than {left[-1]}"
    if found is not None:
        values = {float(one) for name in ("v", "w") for one in found.array(name).ravel()}
        assert values == {float(found.state["step"])}
