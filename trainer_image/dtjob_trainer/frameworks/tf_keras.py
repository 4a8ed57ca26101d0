# SPDX-License-Identifier: Apache-2.0
"""What dtjob replaces in tf_keras once the program imports it, and tf_keras's private names."""

from typing import Any

from dtjob_trainer.frameworks.hooks import Hook
from dtjob_trainer.frameworks.keras3 import hooks_of

_MODEL = "tf_keras.src.engine.training:Model"
_LEGACY = "tf_keras.src.saving.legacy.saved_model"

FIT, EVALUATE, PREDICT, PREDICT_ON_BATCH, SAVE, SAVE_WEIGHTS = hooks_of(_MODEL)
"""On a TPU the first four are tf_keras's own."""
SAVED_MODEL_WRITTEN = Hook(
    targets=(f"{_LEGACY}.save:save",),
    does="A group's task writes beside the directory, and exchanges the directories then.",
    gone="keep tasks apart that save to the same directory",
)
SAVED_MODEL_READ = Hook(
    targets=(f"{_LEGACY}.load:load",),
    does="A group's task reads what it has saved from the files of one save.",
    gone="keep tasks apart that save to the same directory",
)
MEANS = Hook(
    targets=("tf_keras.src.losses:Loss._get_reduction",),
    does="Outside of replicas, a loss may take a mean.",
    gone="call a loss outside of replicas",
)


def allow_means(loss: Any, allowed: bool) -> bool:
    """Say whether a `loss` may take means under a strategy. Returns what was said before."""
    before = bool(loss._allow_sum_over_batch_size)
    loss._allow_sum_over_batch_size = allowed
    return before


def legacy_rate(optimizer: Any) -> Any:
    """The learning rate of an older optimizer, a variable or a schedule."""
    return optimizer._hyper["learning_rate"]


def is_built(optimizer: Any) -> bool:
    """Whether an optimizer has its variables. Before, it has no such attribute."""
    return bool(getattr(optimizer, "_built", False))
