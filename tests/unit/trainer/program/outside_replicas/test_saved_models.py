# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.program.outside_replicas.saved_models: models that a program loads."""

from pathlib import Path

import pytest

tf = pytest.importorskip("tensorflow")
saved_models = pytest.importorskip("dtjob_trainer.program.outside_replicas.saved_models")


class Doubled(tf.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.factor = tf.Variable(2.0)

    @tf.function(input_signature=[tf.TensorSpec([], tf.float32)])  # type: ignore[untyped-decorator]
    def __call__(self, x: object) -> object:
        return self.factor * x


def test_a_model_loaded_for_all_replicas_is_called_in_replicas_and_outside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tensorflow.python.saved_model import load

    monkeypatch.setattr(load._WrapperFunction, "_call_flat", load._WrapperFunction._call_flat)
    saved_models.call_outside_of_replicas()
    tf.saved_model.save(Doubled(), str(tmp_path))
    strategy = tf.distribute.MirroredStrategy(["/cpu:0"])
    with strategy.scope():
        model = tf.saved_model.load(str(tmp_path))
        model.factor.assign(3.0)
        assert float(model(tf.constant(4.0))) == 12
    assert float(strategy.run(model, args=(tf.constant(5.0),))) == 15
