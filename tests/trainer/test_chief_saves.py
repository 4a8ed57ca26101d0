# SPDX-License-Identifier: Apache-2.0
"""Under MultiWorkerMirrored the chief alone saves a Keras 3 model, and no other task has to answer."""

from pathlib import Path

from tests.trainer.support.harness import Cluster, by_hand

HOW = ("", ".function", ".tf", ".scope", ".thread")
SAVES = [f"{when}{how}" for when in ("epoch-0", "after") for how in HOW]
LOADED = """
import sys, keras, numpy as np, tensorflow as tf
x = np.random.default_rng(3).random((5, 8), np.float32)
for name in sys.argv[2:]:
    when = f"{sys.argv[1]}/{name.partition('.')[0]}"
    model, weights = keras.models.load_model(f"{sys.argv[1]}/{name}.keras"), np.load(f"{when}.npz")
    for number, found in enumerate(model.get_weights()):
        np.testing.assert_array_equal(found, weights[f"arr_{number}"])
    model.load_weights(f"{when}.weights.h5")
    for number, found in enumerate(model.get_weights()):
        np.testing.assert_array_equal(found, weights[f"arr_{number}"])
    served = tf.saved_model.load(f"{when}.exported")
    np.testing.assert_allclose(served.serve(x), model(x), rtol=1e-5)
"""


def test_the_saved_model_is_the_trained_model(tmp_path: Path) -> None:
    files = tmp_path / "files"
    files.mkdir()
    counts = {"chief": 1, "worker": 1}
    with Cluster(tmp_path, "MultiWorkerMirrored", counts, "chief_saves.py", str(files)) as run:
        run.start()
        run.expect_success("worker-0")
        (files / "worker-is-done").touch()
        run.expect_success("chief-0")
        assert "Exception ignored" not in run["chief-0"].output()
    by_hand(LOADED, str(files), *SAVES, directory=tmp_path)
