# SPDX-License-Identifier: Apache-2.0
"""The imports that take four fifths of the processor time of a start: TensorFlow, Keras, and what trains with them."""

import contextlib
import gc
import os
import pkgutil
from collections.abc import Iterator
from importlib import import_module

_LEFT_OUT = ("dtjob_trainer.__main__", "dtjob_trainer.launcher")
_LOOPS = ("dtjob_trainer.loops.fit", "dtjob_trainer.loops.train", "dtjob_trainer.checkpoint.model_file")
"""What a program trains with; the rest follows from these."""


@contextlib.contextmanager
def without_collections() -> Iterator[None]:
    """Import without looking for garbage between: an import makes next to none, and looking takes a fifth of it."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def of_a_training_process(serves_only: bool = False) -> None:
    """Import TensorFlow, and Keras and the loops where the task does not only serve. Starts nothing of TensorFlow's."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    with without_collections():
        import tensorflow  # noqa: F401

        if not serves_only:
            import keras  # noqa: F401

            for module in _LOOPS:
                with contextlib.suppress(ImportError, AttributeError):  # it will be told by the program that needs it
                    import_module(module)
    # 300,000 objects, none of them garbage: each look at them would take a twelfth of what the imports took
    gc.freeze()


def of_a_template() -> None:
    """Import all that any training process may import later, but tf_keras: its being there means that it is used."""
    of_a_training_process()
    with without_collections():
        package = import_module("dtjob_trainer")
        for module in pkgutil.walk_packages(package.__path__, "dtjob_trainer."):
            if module.name not in _LEFT_OUT and "tf_keras" not in module.name:
                with contextlib.suppress(ImportError, AttributeError):  # the program that needs it tells
                    import_module(module.name)
