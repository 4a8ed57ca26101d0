# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.loops.building: mistakes that show as variables are made."""

import numpy as np
import pytest

keras = pytest.importorskip("keras")
dt = pytest.importorskip("dtjob_trainer")
errors = pytest.importorskip("dtjob_trainer.errors")

X = np.ones((16, 8), np.float32)


@pytest.mark.parametrize("x", [X, (X, X.sum(axis=1))], ids=["no y", "a tuple in place of x and y"])
def test_targets_that_a_loss_lacks_are_named(x):
    model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(1)])
    model.compile(loss="mse", optimizer="sgd")
    with pytest.raises(errors.FitError, match="y: the model was compiled with a loss"):
        dt.fit(model, x, batch_size=8, verbose=0)
