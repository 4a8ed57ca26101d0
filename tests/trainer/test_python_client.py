# SPDX-License-Identifier: Apache-2.0
"""The Python client with real training processes on this machine."""

from pathlib import Path

import pytest

import dtjob

pytestmark = pytest.mark.timeout(240)


def train(epochs: int) -> None:
    import os

    import keras
    import numpy

    import dtjob_trainer as dt

    x = numpy.random.default_rng(0).normal(size=(512, 8)).astype("float32")
    model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(int(os.environ["UNITS"]))])
    model.compile(loss="mse", optimizer="sgd")
    dt.fit(model, x, x.sum(axis=1), batch_size=64, epochs=epochs, save="model.keras")


def test_a_function_trains_here_and_its_model_is_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with dtjob.Client(here=True) as client:
        job = client.train(train, {"epochs": 3}, env={"UNITS": "1"})
        lines = list(job.logs(follow=True))
        assert job.wait(timeout=200).phase == "Succeeded"
    assert job.metrics()["step"] == 24.0
    assert job.metrics()["loss"] > 0
    assert any(line.startswith("chief-0 | ") and "epoch 3/3" in line for line in lines), lines
    assert job.fetch(directory="out") == [Path("out/model.keras")]
    import keras

    assert keras.saving.load_model(tmp_path / "out" / "model.keras").count_params() == 9
