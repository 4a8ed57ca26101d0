# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.steps.scaling: which steps are written for several replicas."""

import inspect
from typing import Any

import keras
import tensorflow as tf

from dtjob_trainer.steps import scaling


def replicas() -> int:
    return int(tf.distribute.get_strategy().num_replicas_in_sync)


def through_others() -> int:
    return replicas()


def again(depth: int) -> int:
    return again(depth - 1) if depth else 0


class Alone(keras.Model):
    def train_step(self, data: Any) -> Any:
        return {"loss": tf.nn.compute_average_loss(data) * again(2)}


class ByItself(keras.Model):
    def train_step(self, data: Any) -> Any:
        return {"loss": data / tf.distribute.get_strategy().num_replicas_in_sync}


class ByFunctions(keras.Model):
    def train_step(self, data: Any) -> Any:
        return {"loss": data / through_others()}


class Below(ByFunctions):
    pass


def test_steps_that_know_of_replicas_are_known_by_what_they_and_their_functions_name() -> None:
    kinds = (Alone, ByItself, ByFunctions, Below)
    found = [scaling.scaled_at(kind()) for kind in kinds]
    line = inspect.getsourcelines(replicas)[1] + 1
    assert found[0] is None
    assert str(found[1]).endswith(" (num_replicas_in_sync)")
    assert found[2:] == [f"{__file__}:{line} (num_replicas_in_sync)"] * 2
