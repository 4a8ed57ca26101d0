# SPDX-License-Identifier: Apache-2.0
"""Every task saves to the same files, again and again, while a thread reads them."""

import threading
import zipfile
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf
import tf_keras

import dtjob_trainer as dt
from dtjob_trainer.process import runtime

SAVES = 4
model = keras.Sequential([keras.Input((512,)), keras.layers.Dense(1024), keras.layers.Dense(1024)])
model.compile("adam", "mse")
over, broken = threading.Event(), []
path = Path("model.keras")


def read() -> None:
    while not over.is_set():
        if path.exists():
            try:
                broken.extend(zipfile.ZipFile(path).testzip() or [])
            except zipfile.BadZipFile as error:
                broken.append(str(error))


reader = threading.Thread(target=read)
reader.start()
counted = tf.Variable(0)
manager = tf.train.CheckpointManager(tf.train.Checkpoint(model=model, counted=counted), "checkpoints", max_to_keep=2)
legacy = tf_keras.Sequential([tf_keras.layers.InputLayer(4), tf_keras.layers.Dense(2)])
inputs = np.ones((1, 512), "float32")


def same(found: object, expected: object) -> bool:
    return np.allclose(np.asarray(found), np.asarray(expected), atol=1e-5)


for number in range(SAVES):
    model.save(path)
    model.save_weights("some.weights.h5")
    loaded = keras.models.load_model(path)
    assert all(np.array_equal(a, b) for a, b in zip(loaded.get_weights(), model.get_weights(), strict=True))
    counted.assign(number)
    assert manager.save().endswith(f"ckpt-{number + 1}")
    counted.assign(-1)
    manager.checkpoint.restore(manager.latest_checkpoint).assert_consumed()
    assert counted.numpy() == number
    model.export("exported", verbose=False)
    exported = tf.saved_model.load("exported")
    assert same(exported.serve(inputs), model(inputs))
    tf.saved_model.save(model, "saved")
    legacy.save("legacy", save_format="tf")
    assert same(tf_keras.models.load_model("legacy")(inputs[:, :4]), legacy(inputs[:, :4]))
    legacy.save_weights("weights/cp")
    legacy.load_weights("weights/cp").assert_consumed()
model.save_weights(f"cut-{dt.is_chief()}.weights.h5", max_shard_size=1.0)
over.set()
reader.join()
assert not broken, broken
begin = f".{runtime.current().task.id}-"
own = {each.name.removeprefix(begin) for each in Path().rglob(f"{begin}*")}
assert own == (set() if dt.is_chief() else {"exported", "saved", "legacy"}), own
print("saved", dt.is_chief())
