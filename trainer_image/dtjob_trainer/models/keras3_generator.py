# SPDX-License-Identifier: Apache-2.0
"""Keras 3's own generator of random numbers, from which layers without a seed draw."""

import random
from contextlib import AbstractContextManager
from typing import Any

from keras.src.random import seed_generator

from dtjob_trainer.models.cuts import replaced


def global_generator() -> Any:
    """The one of this thread; where it is made only now, without a draw from Python's own random numbers."""
    before = random.getstate()
    generator = seed_generator.global_seed_generator()
    random.setstate(before)
    return generator


def one_generator(generator: Any) -> AbstractContextManager[None]:
    """While this lasts, all threads draw from this one.

    Keras has one for each, and each replica is traced in a thread of its own, where none can be made.
    """
    return replaced(seed_generator, global_seed_generator=lambda: generator)
