# SPDX-License-Identifier: Apache-2.0
"""Devices that a program names: in calls of `tf.config`, and in options for saving and loading."""

import functools
from collections.abc import Callable
from typing import Any

from dtjob_trainer.contract.task import Task
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
LOCAL = "/job:localhost"
"""The device of the process itself, as scripts give it by the guides on saving."""


def leave_to_the_job(here: Runtime) -> None:
    """Have calls that TensorFlow refuses once it has begun do nothing, and the log say once what holds instead.

    Scripts make them at their top, where plain `python` has not begun with TensorFlow. In a job it has begun, for the
    strategy.
    """
    warn = functools.cache(here.warn)
    for name, instead in INSTEAD.items():
        words = f"tf.config.{name} has no effect here: {instead}"
        hooks.put(tensorflow.CONFIG_SETTERS[name], hooks.around(functools.partial(called, warn, words)))


def called(warn: Callable[[str], None], words: str, setter: Callable[..., None], *args: Any, **kwargs: Any) -> None:
    """Call `setter` of `tf.config`, or `warn` with `words` where it comes too late."""
    try:
        setter(*args, **kwargs)
    except RuntimeError as error:  # "… cannot be modified after …"
        if "after" not in str(error):
            raise
        warn(words)


def stay_here(task: Task) -> None:
    """Have `experimental_io_device` of options name this process as TensorFlow does, where it is LOCAL.

    In a group TensorFlow names the process by its role. It then knows no other name.
    """
    here = f"/job:{task.role}/task:{task.index}" if task.traits.asynchronous else None  # None: TensorFlow's own choice

    def make(original: Callable[..., None], self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        if str(self.experimental_io_device or "").startswith(LOCAL):
            self.experimental_io_device = here

    hooks.put(tensorflow.DEVICE_OPTIONS, hooks.around(make))
