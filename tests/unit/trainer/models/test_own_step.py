# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.models.own_step: which steps are written for several replicas, and how their models are built."""

import inspect
from typing import Any

import keras
import pytest
import tensorflow as tf

from dtjob_trainer.contract.strategy import TRAITS
from dtjob_trainer.models import own_step
from dtjob_trainer.models.keras3_model import KerasModel


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
    found = [own_step.scaled_at(kind()) for kind in kinds]
    line = inspect.getsourcelines(replicas)[1] + 1
    assert found[0] is None
    assert str(found[1]).endswith(" (num_replicas_in_sync)")
    assert found[2:] == [f"{__file__}:{line} (num_replicas_in_sync)"] * 2


def test_a_model_that_is_to_run_eagerly_is_trained_as_a_graph_with_a_warning() -> None:
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse", run_eagerly=True)
    trained = KerasModel(model, TRAITS["Default"])
    trained.check()
    assert [remark.partition(":")[0] for remark in trained.remarks()] == ["run_eagerly=True is left aside"]


class Siamese(keras.Model):
    """Its call takes both parts of a batch, as its step gives them."""

    def __init__(self) -> None:
        super().__init__()
        one, other = keras.Input((2,), name="one"), keras.Input((2,), name="other")
        shared = keras.layers.Dense(1)
        self.both = keras.Model([one, other], shared(one) - shared(other))
        self.tracker = keras.metrics.Mean(name="loss")

    def call(self, inputs: Any) -> Any:
        return self.both(inputs)

    def train_step(self, data: Any) -> Any:
        raise NotImplementedError

    @property
    def metrics(self) -> list[Any]:
        return [self.tracker]


@pytest.mark.parametrize("arguments", [{}, {"weighted_metrics": []}, {"metrics": ["mae"]}])
def test_a_model_whose_layers_are_built_need_not_be_called_on_x_alone(arguments: dict[str, Any]) -> None:
    model = Siamese()
    model.compile("sgd", **arguments)
    part = tf.TensorSpec([None, 2])
    KerasModel(model, TRAITS["Mirrored"]).build(part, part, None)
    assert not model._compile_metrics or not model._compile_metrics.built


def test_the_error_of_a_model_that_cannot_be_built_is_that_of_its_call() -> None:
    model = Siamese()
    model.further = keras.layers.Dense(1)
    model.compile("sgd")
    with pytest.raises(ValueError, match="input"):
        KerasModel(model, TRAITS["Mirrored"]).build(tf.TensorSpec([None, 2]), tf.TensorSpec([None, 2]), None)
