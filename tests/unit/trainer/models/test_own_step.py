"""dtjob_trainer.models.own_step: which steps are written for several replicas."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from dtjob_trainer.models import own_step


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
    assert [own_step.scales_itself(kind()) for kind in kinds] == [False, True, True, True]
