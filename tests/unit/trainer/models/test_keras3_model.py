# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.models.keras3_model: how models with steps of their own get their variables."""

from typing import Any

import keras
import pytest
import tensorflow as tf

from dtjob_trainer.contract.strategy import TRAITS
from dtjob_trainer.errors import FrameworkError
from dtjob_trainer.frameworks import hooks, keras3
from dtjob_trainer.models.keras3_model import KerasModel


@pytest.mark.parametrize("asked", ["run_eagerly=True", "tf.config.run_functions_eagerly(True)", ""])
def test_a_model_that_is_to_run_eagerly_is_trained_as_a_graph_with_a_warning(asked: str) -> None:
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse", run_eagerly=asked == "run_eagerly=True")
    trained = KerasModel(model, TRAITS["Default"])
    trained.check()
    tf.config.run_functions_eagerly(asked.startswith("tf."))
    try:
        remarks = [remark.partition(":")[0] for remark in trained.remarks()]
    finally:
        tf.config.run_functions_eagerly(False)
    assert remarks == ([f"{asked} is left aside"] if asked else [])


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


class OwnStep(keras.Sequential):
    """A model with a step of its own."""

    def train_step(self, data: Any) -> Any:
        raise NotImplementedError


def test_a_name_that_keras_lacks_is_told_though_the_layers_are_built(monkeypatch: pytest.MonkeyPatch) -> None:
    model = OwnStep([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    monkeypatch.setattr(keras3, "compiled_loss", hooks.attribute("_renamed_loss", "see the losses"))
    with pytest.raises(FrameworkError, match="_renamed_loss, so dtjob cannot see the losses"):
        KerasModel(model, TRAITS["Mirrored"]).build(tf.TensorSpec([None, 2]), tf.SparseTensorSpec([None, 1]), None)
