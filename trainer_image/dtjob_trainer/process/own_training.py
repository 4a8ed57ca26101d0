# SPDX-License-Identifier: Apache-2.0
"""Notices a program that trains by other means than `fit` and `train`. Its steps are not counted."""

from typing import Any

from dtjob_trainer.process.runtime import Runtime


def watch(here: Runtime) -> None:
    """Report `trainsItself` if the program computes gradients before it has called `fit` or `train`.

    Only the first call of `GradientTape.gradient` is watched. After it the method is TensorFlow's own again.
    """
    import tensorflow as tf

    tape, original = tf.GradientTape, tf.GradientTape.gradient

    @tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
    def gradient(self: Any, *args: Any, **kwargs: Any) -> Any:
        if tape.gradient is gradient:  # what others have put in its place since stays
            tape.gradient = original
        if not here.began:
            here.progress.report(trainsItself=True)
        return original(self, *args, **kwargs)

    tape.gradient = gradient
