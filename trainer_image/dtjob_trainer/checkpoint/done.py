# SPDX-License-Identifier: Apache-2.0
"""The mark DONE in a checkpoint directory: this job has ended, and nothing is left to train (contract.md)."""

import json
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from dtjob_trainer.checkpoint import object_store
from dtjob_trainer.checkpoint.directory import make_directory, read_object, write_text
from dtjob_trainer.contract.task import Task

gfile = tf.io.gfile
DONE = "DONE"


def mark_done(task: Task, status: Mapping[str, Any]) -> None:
    """Mark the run of `task`'s job done, with its last status. Called by the chief task after the program has ended."""
    assert task.checkpoint is not None
    object_store.check(task.checkpoint.directory)
    make_directory(task.checkpoint.directory)
    told = {key: value for key, value in status.items() if value is not None}
    mark = {"uid": task.uid, "step": status.get("step"), "status": told}
    write_text(f"{task.checkpoint.directory}/{DONE}", json.dumps(mark, default=float))


def read(directory: str) -> dict[str, Any] | None:
    """The mark in `directory`; None if there is none, and empty if it says nothing."""
    return read_object(f"{directory}/{DONE}")


def is_done(directory: str, uid: str) -> bool:
    """Whether the run of the job `uid` is marked done in `directory`."""
    mark = read(directory)
    return mark is not None and mark.get("uid") == uid


def remove_others_mark(directory: str, uid: str) -> None:
    """Remove a mark that another job than `uid` left, or that says nothing: this job trains on from its checkpoints."""
    mark = read(directory)
    if mark is not None and mark.get("uid") != uid:
        gfile.remove(f"{directory}/{DONE}")
