# SPDX-License-Identifier: Apache-2.0
"""`save`: a trained model as one file, written by the chief, whole or not at all."""

import tempfile
from typing import Any

import tensorflow as tf

from dtjob_trainer.checkpoint import object_store
from dtjob_trainer.checkpoint.directory import TEMPORARY_MODEL, flush, flush_names
from dtjob_trainer.process import runtime
from dtjob_trainer.strategies.ambient import outside_strategy
from dtjob_trainer.strategies.collective import Group

SAVED_MODEL = {"assets", "fingerprint.pb", "keras_metadata.pb", "saved_model.pb", "variables"}
"""What tf_keras writes into a directory, where the path names no file format."""


def save(model: Any, path: str) -> None:
    """Write `model` to `path`, as `model.save` does, at the chief task. Every task calls it.

    A relative path lies below the checkpoint directory where the job has one. Under MultiWorkerMirrored a tf_keras
    model's own `save` at the chief alone would break off the training of all. Raises ValueError for a directory that
    holds more than an earlier model, as nothing else is ever removed.
    """
    here = runtime.current()
    collective = here.traits.collective
    if collective and isinstance(model, tf.Module):  # tf_keras sums up statistics of all tasks as it saves
        with tempfile.TemporaryDirectory() as scratch:
            _save(model, path if here.is_chief else f"{scratch}/{path.rpartition('/')[2]}", here)
            Group(here.strategy, here.task).leave_together()
    elif here.is_chief:
        # saving makes variables of its own, which in the strategy's scope all tasks would have to make
        (outside_strategy(_save) if collective else _save)(model, path, here)


def _save(model: Any, path: str, here: runtime.Runtime) -> None:
    """Write it whole or not at all."""
    if not path.startswith("/") and "://" not in path and here.task is not None and here.task.checkpoint is not None:
        path = f"{here.task.checkpoint.directory}/{path}"
    folder, separator, name = path.rpartition("/")
    if separator:
        tf.io.gfile.makedirs(folder)
    is_directory = tf.io.gfile.isdir(path)
    others = {entry.rstrip("/") for entry in tf.io.gfile.listdir(path)} - SAVED_MODEL if is_directory else set()
    if others:
        raise ValueError(f"save={path!r} is a directory with other files ({min(others)}); name one of the model's own")
    temporary = f"{folder}{separator}{TEMPORARY_MODEL}{name}"
    write(model, path, temporary)
    if here.is_chief:
        here.progress.report(model=path)


def write(model: Any, path: str, temporary: str) -> None:
    """Write `model` to `path`, whole or not at all; `temporary`: its path until it is whole.

    Keras 3 writes a `.keras` file of an object store in one go.
    """
    if object_store.holds(path) and path.endswith(".keras") and not isinstance(model, tf.Module):
        model.save(path)
        return
    model.save(temporary)
    flush(temporary)
    if tf.io.gfile.isdir(path):  # an earlier SavedModel; a directory cannot be renamed over another
        tf.io.gfile.rmtree(path)
    tf.io.gfile.rename(temporary, path, overwrite=True)
    flush_names(path.rpartition("/")[0])
