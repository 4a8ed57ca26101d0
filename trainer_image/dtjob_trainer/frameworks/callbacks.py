# SPDX-License-Identifier: Apache-2.0
"""Attributes of the callbacks of Keras 3 and tf_keras, which have no get_state."""

import time
from typing import Any

OF_THE_PROGRAM = ("Callback", "LambdaCallback")
"""Classes of the packages that hold code of the program alone."""
AVERAGES_IN_MODEL = "_ema_weights_in_model"
"""Attribute of SwapEMAWeights: whether weights and averages have changed places."""


def averages_in_model(callback: Any) -> dict[str, bool]:
    """Whether weights and averages have changed places, by the name of the attribute; empty of other callbacks."""
    found = getattr(callback, AVERAGES_IN_MODEL, None)
    return {} if found is None else {AVERAGES_IN_MODEL: found}


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
