# SPDX-License-Identifier: Apache-2.0
"""Attributes of the callbacks of Keras 3 and tf_keras, which have no get_state."""

import time
from collections.abc import Mapping
from typing import Any

from dtjob_trainer.frameworks.hooks import SEEN, version

AVERAGES_IN_MODEL = "_ema_weights_in_model"
"""Attribute of SwapEMAWeights: whether weights and averages have changed places."""
STATEFUL: Mapping[str, tuple[str, ...]] = {
    "EarlyStopping": ("wait", "stopped_epoch", "best", "best_epoch", "best_weights"),
    "ReduceLROnPlateau": ("wait", "best", "cooldown_counter"),
    "ModelCheckpoint": (
        "best",
        "_current_epoch",
        "_batches_seen_since_last_saving",
        "_last_batch_seen",
        "epochs_since_last_save",
    ),
    "TensorBoard": ("_global_train_batch", "_global_test_batch"),
    "CSVLogger": ("keys",),
    "SwapEMAWeights": (AVERAGES_IN_MODEL,),
    "LearningRateScheduler": (),
    "TerminateOnNaN": (),
    "RemoteMonitor": (),
    "ProgbarLogger": (),
    "History": (),
}
"""What the packages' own callbacks must not forget over a restart."""
_LATER = {"_current_epoch", "_global_test_batch", "epochs_since_last_save"}
"""Those of them that a callback has only in one package, or only after an epoch."""


def state_of(callback: Any, name: str) -> dict[str, Any]:
    """What a callback of the class of that `name` must not forget, by attribute."""
    return {key: getattr(callback, key) for key in STATEFUL.get(name, ()) if hasattr(callback, key)}


def lost(callback: Any, kind: type, name: str) -> list[str]:
    """Why `state_of` a callback, which has begun, lacks something: its class `kind` of a package has other attributes.

    Each is a sentence with what to use instead. Empty: nothing is missing.
    """
    package = kind.__module__.partition(".")[0]
    return [
        f"{name} of {version(package)} has no attribute {key}, which a restart would forget; use {SEEN[package]}"
        for key in STATEFUL.get(name, ())
        if key not in _LATER and not hasattr(callback, key)
    ]


def begin_epoch(callback: Any, iterations: Any) -> None:
    """Have a TensorBoard callback count the steps of each second from now on, `iterations` being done."""
    callback._epoch_start_time = time.time()
    callback._previous_epoch_iterations = iterations


def profiles(callback: Any) -> bool:
    """Whether a TensorBoard callback profiles some batches."""
    return bool(callback._should_trace)


def counter_of(model: Any) -> Any:
    """The variable in which a model of tf_keras counts its steps, for its TensorBoard; None of Keras 3."""
    return getattr(model, "_train_counter", None)
