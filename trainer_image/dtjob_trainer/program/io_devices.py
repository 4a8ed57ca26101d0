# SPDX-License-Identifier: Apache-2.0
"""`experimental_io_device="/job:localhost"` of options for saving and loading: the device of the process itself.

Scripts give it as the guides on saving do. In a group TensorFlow names the process by its role. It then knows no such
device.
"""

from typing import Any

from dtjob_trainer.contract.task import Task
from dtjob_trainer.frameworks import hooks, tensorflow

LOCAL = "/job:localhost"


def stay_here(task: Task) -> None:
    """Have these options name this process as TensorFlow does, where they name LOCAL."""
    here = f"/job:{task.role}/task:{task.index}" if task.traits.asynchronous else None  # None: TensorFlow's own choice
    hooks.put(tensorflow.DEVICE_OPTIONS, lambda original: _naming(original, here))


def _naming(original: Any, here: str | None) -> Any:
    def make(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        if str(self.experimental_io_device or "").startswith(LOCAL):
            self.experimental_io_device = here

    return make
