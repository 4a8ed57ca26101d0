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
    job = dtjob.Client(here=True).train(train, {"epochs": 3}, env={"UNITS": "1"})
    assert isinstance(job, dtjob.LocalJob)
    with pytest.raises(dtjob.JobFailed, match="has not ended"):
        job.fetch()
    lines = list(job.logs(follow=True))
    summary = job.wait(timeout=200)
    assert (summary["phase"], job.metrics()["step"]) == ("Succeeded", 24.0)
    assert job.metrics()["loss"] > 0
    assert any("training begins: 24 steps" in line for line in lines), lines
    assert job.fetch(directory="out") == [Path("out/model.keras")]
    import keras

    assert keras.saving.load_model(tmp_path / "out" / "model.keras").count_params() == 9
