# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.checkpoint: what a power loss leaves of saves, after any of their changes.

DTJOB_POWER_LOSSES says after how many moments of each record the power is lost (12).
"""

import json
import os
import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from dtjob_trainer.checkpoint import directory as directory_module
from dtjob_trainer.checkpoint import done, model_file, writer
from dtjob_trainer.checkpoint.saves import Saves
from dtjob_trainer.checkpoint.stored import Stored
from dtjob_trainer.contract.settings import Checkpoint
from dtjob_trainer.contract.task import Task
from dtjob_trainer.models import values
from tests.power_loss.mounted import MountedDisk

LOSSES = int(os.environ.get("DTJOB_POWER_LOSSES", "12"))
NUMBERS = 2500
"""Float32 of a checkpoint: three pages."""


class Run:
    """The checkpoints of one job on a disk."""

    def __init__(self, disk: MountedDisk, max_to_keep: int) -> None:
        self.directory = f"{disk.where}/job/checkpoints"
        self._settings = Checkpoint(self.directory, max_to_keep=max_to_keep, write_mode="Sync")
        self.task = Task("test", "default", "uid", "chief", 0, checkpoint=self._settings)
        self.writer = self._writer()

    def _writer(self) -> writer.Writer:
        found = writer.Writer(self.task, self._settings, lambda **_: None, lambda *_, **__: None)
        found.owner.take = lambda: None  # type: ignore[method-assign]  # a thread that writes at times
        return found

    def save(self, step: int, number: float, in_files: bool) -> None:
        """Save `step`, in which all is `number`; `in_files`: in more than one file of data."""
        array = tf.fill([NUMBERS], number)
        rows = [values.Rows((NUMBERS,), 0, NUMBERS, array)] if in_files else array
        self.writer.write(step, {"v": rows}, {"step": step, "number": number})
        self.writer.wait()

    def newest(self) -> Stored | None:
        """What a process that starts now restores."""
        saves: Any = SimpleNamespace(_here=SimpleNamespace(task=self.task, log=lambda *_, **__: None))
        return Saves._newest(saves, self._writer())


SAVED = [(5, 1.0), (10, 2.0), (15, 3.0), (15, 4.0), (20, 5.0), (25, 6.0)]
"""Steps in their order, each with what its checkpoint holds. One is saved twice, as at the end of a run."""


@pytest.mark.parametrize(("max_to_keep", "in_files"), [(1, False), (3, True)], ids=["1-one-file", "3-files"])
def test_after_a_power_loss_the_newest_reported_checkpoint_is_there_and_whole(
    disk: MountedDisk, max_to_keep: int, in_files: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(values, "PIECE_BYTES", 4000)
    run = Run(disk, max_to_keep)
    run.writer.prepare()
    reported = [(disk.changes(), 0, 0.0)]
    for step, number in SAVED:
        run.save(step, number, in_files)
        reported.append((disk.changes(), step, number))
    moments = random.Random(0)
    for seed in range(LOSSES):
        at = moments.randint(0, disk.changes())
        disk.lose(at, seed)
        last = max(index for index, (changes, _, _) in enumerate(reported) if changes <= at or index == 0)
        found = run.newest()
        is_now = (0, 0.0) if found is None else (found.state["step"], found.state["number"])
        allowed = [(step, number) for _, step, number in reported[last : last + 2]]
        assert is_now in allowed, f"lost after change {at}, seed {seed}"
        if found is not None:
            assert np.all(found.array("v") == is_now[1]), f"torn: lost after change {at}, seed {seed}"
        damaged = {path.name.partition(".")[0] for path in Path(run.directory).glob("damaged-*")}
        unreported = {f"damaged-ckpt-{step}" for _, step, _ in reported[last + 1 : last + 2]}
        assert damaged <= unreported, f"lost after change {at}, seed {seed}"


def test_the_record_of_the_best_model_is_never_of_another_model(disk: MountedDisk) -> None:
    directory = f"{disk.where}/job"
    directory_module.make_directory(directory)
    reported = []
    for step in range(1, 6):
        content = bytes([step]) * 10_000

        def save(path: str, content: bytes = content) -> None:
            Path(path).write_bytes(content)

        model_file.write(SimpleNamespace(save=save), f"{directory}/best.keras", f"{directory}/.best")
        directory_module.write_text(f"{directory}/best.json", json.dumps({"step": step}))
        reported.append(disk.changes())
    moments = random.Random(0)
    for seed in range(LOSSES):
        at = moments.randint(0, disk.changes())
        disk.lose(at, seed)
        recorded = (directory_module.read_object(f"{directory}/best.json") or {}).get("step", 0)
        model = Path(directory, "best.keras")
        found = set(model.read_bytes()) if model.exists() else {0}
        assert recorded >= sum(changes <= at for changes in reported)
        assert found <= {recorded, recorded + 1}, f"lost after change {at}, seed {seed}"
        assert len(found) == 1, f"torn: lost after change {at}, seed {seed}"


def test_a_run_that_was_marked_done_stays_done(disk: MountedDisk) -> None:
    directory = f"{disk.where}/job/checkpoints"
    task = Task("test", "default", "uid", "chief", 0, checkpoint=Checkpoint(directory))
    done.mark_done(task, {"step": 5})
    marked = disk.changes()
    for seed in range(LOSSES):
        disk.lose(marked, seed)
        assert done.is_done(directory, "uid")
