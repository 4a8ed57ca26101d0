# SPDX-License-Identifier: Apache-2.0
"""Calls of `tf.config` that a program makes before TensorFlow begins. In a job it has begun, for the strategy."""

import functools
from collections.abc import Callable
from typing import Any

from dtjob_trainer.frameworks import hooks, tensorflow
from dtjob_trainer.process.runtime import Runtime

LOGICAL = "strategyOptions.logicalCPUs splits the CPU"
VISIBLE = "nvidia.com/gpu in the container's resources says how many GPUs there are"
INSTEAD = {
    "set_logical_device_configuration": LOGICAL,
    "experimental.set_virtual_device_configuration": LOGICAL,
    "set_visible_devices": VISIBLE,
    "experimental.set_visible_devices": VISIBLE,
    "experimental.set_memory_growth": "the memory of GPUs grows in a job",
    "threading.set_intra_op_parallelism_threads": "set TF_NUM_INTRAOP_THREADS in program.env",
    "threading.set_inter_op_parallelism_threads": "set TF_NUM_INTEROP_THREADS in program.env",
}
"""What holds in a job instead of each call."""


def leave_to_the_job(here: Runtime) -> None:
    """Have calls that TensorFlow refuses once it has begun do nothing, and the log say once what holds instead.

    Scripts make them at their top, where plain `python` has not begun with TensorFlow.
    """
    warn = functools.cache(here.warn)
    for name, instead in INSTEAD.items():
        words = f"tf.config.{name} has no effect here: {instead}"
        hooks.put(tensorflow.CONFIG_SETTERS[name], functools.partial(_left, words=words, warn=warn))


def _left(original: Callable[..., None], words: str, warn: Callable[[str], None]) -> Callable[..., None]:
    def call(*args: Any, **kwargs: Any) -> None:
        try:
            original(*args, **kwargs)
        except RuntimeError as error:  # "… cannot be modified after …"
            if "after" not in str(error):
                raise
            warn(words)

    return call
