# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.frameworks.callbacks: what Keras's own callbacks must not forget."""

from typing import Any

import pytest

from dtjob_trainer.frameworks import callbacks

keras = pytest.importorskip("keras")
keeping = pytest.importorskip("dtjob_trainer.callbacks.keeping")
GIVEN: dict[str, tuple[Any, ...]] = {
    "ModelCheckpoint": ("model.keras",),
    "CSVLogger": ("log.csv",),
    "LearningRateScheduler": (float,),
    "TensorBoard": ("events",),
}


@pytest.mark.parametrize("package", ["keras", "tf_keras"])
def test_callbacks_have_what_they_must_not_forget(package: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    home = pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    model = home.Sequential([home.layers.Dense(1)])
    model.build((None, 2))
    model.compile(home.optimizers.SGD(use_ema=True), "mse")
    for name in callbacks.STATEFUL:
        kind = getattr(home.callbacks, name, None)
        if kind is None:
            continue
        callback = kind(*GIVEN.get(name, ()))
        callback.set_params({"epochs": 1, "steps": 1, "verbose": 0})
        callback.set_model(model)
        callback.on_train_begin()
        assert callbacks.lost(callback, kind, name) == []


def test_an_attribute_with_another_name_is_no_exact_state() -> None:
    stopping = keras.callbacks.EarlyStopping()
    stopping.set_model(keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)]))
    stopping.on_train_begin()
    assert keeping.kept(stopping)[1] == []
    del stopping.wait
    (why,) = keeping.kept(stopping)[1]
    assert why.startswith("EarlyStopping of Keras ")
    assert why.endswith(" has no attribute wait, which a restart would forget; use Keras 3.12 to 3.15")
