# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.frameworks.callbacks: attributes of Keras's own callbacks that are asked for by name."""

from pathlib import Path

import pytest

from dtjob_trainer.frameworks import callbacks

keras = pytest.importorskip("keras")
keeping = pytest.importorskip("dtjob_trainer.callbacks.keeping")


def test_averages_that_are_in_the_model_are_known() -> None:
    swaps = keras.callbacks.SwapEMAWeights()
    assert callbacks.averages_in_model(swaps) == {callbacks.AVERAGES_IN_MODEL: False}
    assert callbacks.averages_in_model(keras.callbacks.EarlyStopping()) == {}
    assert keeping.validates_on_averages([keeping.kept(swaps)[0]])


@pytest.mark.parametrize("package", ["keras", "tf_keras"])
def test_the_batches_that_a_tensorboard_counts_are_kept_and_nothing_else(package: str, tmp_path: Path) -> None:
    home = pytest.importorskip(package)
    model = home.Sequential([home.layers.Dense(1)])
    model.build((None, 2))
    model.compile("sgd", "mse")
    board = home.callbacks.TensorBoard(str(tmp_path), write_steps_per_second=True)
    board.set_params({"epochs": 1, "steps": 2, "verbose": 0})
    board.set_model(model)
    board.on_train_begin()
    keeping.begin(board)
    board.on_epoch_begin(0)
    for batch in range(2):
        board.on_train_batch_begin(batch)
        board.on_train_batch_end(batch, {"loss": 1.0})
    state = keeping.kept(board)[0]
    assert list(state[keeping.ATTRIBUTES].values()) == [2]
    again = home.callbacks.TensorBoard(str(tmp_path), write_steps_per_second=True)
    keeping.restore(again, state, model)
    assert again._global_train_batch == 2
