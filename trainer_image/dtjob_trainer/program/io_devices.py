# SPDX-License-Identifier: Apache-2.0
"""`experimental_io_device="/job:localhost"` of options for saving and loading: the device of the process itself.

Scripts give it as the guides on saving do. In a group TensorFlow names the process by its role. It then knows no such
device.
"""

from __future__ import annotations

import functools
from typing import Any

import tensorflow as tf

LOCAL = "/job:localhost"


def stay_here() -> None:
    """Have these options leave the device to TensorFlow, which is that of this process, where they name LOCAL."""
    for kind in (tf.saved_model.SaveOptions, tf.saved_model.LoadOptions, tf.train.CheckpointOptions):
        kind.__init__ = _leaving_out(kind.__init__)


def _leaving_out(original: Any) -> Any:
    @functools.wraps(original)
    def make(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        if str(self.experimental_io_device or "").startswith(LOCAL):
            self.experimental_io_device = None

    return make
