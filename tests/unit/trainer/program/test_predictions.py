# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.program.predictions: where models predict."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dtjob_trainer.contract.strategy import TRAITS
from dtjob_trainer.frameworks import hooks, keras3

keras = pytest.importorskip("keras")
predictions = pytest.importorskip("dtjob_trainer.program.predictions")


def gpus(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    found = SimpleNamespace(list_logical_devices=lambda kind: ["gpu"] * count)
    monkeypatch.setattr(predictions, "tf", SimpleNamespace(config=found))


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
    assert predictions.on_one_device(TRAITS[strategy], replicas) == here


def test_a_batch_is_predicted_once_where_replicas_share_it(monkeypatch: pytest.MonkeyPatch) -> None:
    gpus(monkeypatch, 2)
    asked = []

    class Model:
        def predict(self, x: Any, batch_size: int, verbose: int) -> Any:
            asked.append((batch_size, verbose))
            return x["a"]

    predictions.replace(keras3.PREDICT, keras3.PREDICT_ON_BATCH, TRAITS["Mirrored"], 2)
    predict_on_batch = keras.Model.predict_on_batch
    hooks.undo()
    assert predict_on_batch(Model(), {"a": np.ones((5, 1))}).shape == (5, 1)
    assert asked == [(5, 0)]
