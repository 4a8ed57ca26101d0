# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.program.keras_methods: which methods are refused under which strategy, and where models predict."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dtjob_trainer.contract.strategy import TRAITS
from dtjob_trainer.errors import ModelFitError
from dtjob_trainer.frameworks import hooks, keras3

keras = pytest.importorskip("keras")
keras_methods = pytest.importorskip("dtjob_trainer.program.keras_methods")

ON_BATCHES = ("train_on_batch", "test_on_batch")


@pytest.mark.parametrize("name", TRAITS)
def test_methods_are_refused_where_keras_fails_and_left_alone_elsewhere(name: str) -> None:
    expected = {"MultiWorkerMirrored": ON_BATCHES, "ParameterServer": ON_BATCHES}
    assert keras_methods.refused(TRAITS[name]) == expected.get(name, ())


def test_models_of_another_strategy_are_left_alone() -> None:
    class Model:
        distribute_strategy = "the job's"

        def train_on_batch(self) -> str:
            return "trained"

    def call() -> Any:
        return keras_methods._refuse("under it", "the job's", Model.train_on_batch, Model())

    with pytest.raises(ModelFitError, match=r"Model\.train_on_batch cannot be used under it: Keras 3 fails"):
        call()
    Model.distribute_strategy = "another"
    assert call() == "trained"


def gpus(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    found = SimpleNamespace(list_logical_devices=lambda kind: ["gpu"] * count)
    monkeypatch.setattr(keras_methods, "tf", SimpleNamespace(config=found))


@pytest.mark.parametrize(
    ("strategy", "replicas", "count", "here"),
    [
        ("MultiWorkerMirrored", 1, 0, True),
        ("MultiWorkerMirrored", 4, 2, True),
        ("ParameterServer", 1, 0, True),
        ("Mirrored", 2, 0, True),
        ("Mirrored", 2, 2, False),
        ("Mirrored", 1, 0, False),
        ("Default", 1, 0, False),
        ("TPU", 8, 0, False),
    ],
)
def test_strategy_and_gpus_decide_whether_models_predict_on_one_device(
    monkeypatch: pytest.MonkeyPatch, strategy: str, replicas: int, count: int, here: bool
) -> None:
    gpus(monkeypatch, count)
    assert keras_methods.on_one_device(TRAITS[strategy], replicas) == here


def test_a_batch_is_predicted_once_where_replicas_share_it(monkeypatch: pytest.MonkeyPatch) -> None:
    gpus(monkeypatch, 2)
    asked = []

    class Model:
        def predict(self, x: Any, batch_size: int, verbose: int) -> Any:
            asked.append((batch_size, verbose))
            return x["a"]

    keras_methods.predict_by_one(keras3.PREDICT, keras3.PREDICT_ON_BATCH, TRAITS["Mirrored"], 2)
    predict_on_batch = keras.Model.predict_on_batch
    hooks.undo()
    assert predict_on_batch(Model(), {"a": np.ones((5, 1))}).shape == (5, 1)
    assert asked == [(5, 0)]
