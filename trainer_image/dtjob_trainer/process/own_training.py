# SPDX-License-Identifier: Apache-2.0
"""Notices a program that trains by other means than `fit` and `train`. Its steps are not counted."""

from collections.abc import Callable
from typing import Any

from dtjob_trainer.frameworks import hooks, tensorflow
from dtjob_trainer.process.runtime import Runtime


def watch(here: Runtime) -> None:
    """Report `trainsItself` if the program computes gradients before it has called `fit` or `train`.

    Only the first call of `GradientTape.gradient` is watched. After it the method is TensorFlow's own again.
    """
    import tensorflow as tf

    def noticing(original: Callable[..., Any]) -> Callable[..., Any]:
        def gradient(self: Any, *args: Any, **kwargs: Any) -> Any:
            hooks.undo(tensorflow.OWN_GRADIENTS)
            if not here.began:
                here.progress.report(trainsItself=True)
            return original(self, *args, **kwargs)

        replacement: Callable[..., Any] = tf.autograph.experimental.do_not_convert(gradient)
        return replacement

    hooks.put(tensorflow.OWN_GRADIENTS, noticing)
