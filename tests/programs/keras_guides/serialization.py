# SPDX-License-Identifier: Apache-2.0
"""Custom objects saved and loaded, weights moved between models, clones, and training that goes on after loading."""

import json
import os
import tempfile

import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(6)
directory = tempfile.mkdtemp()


@keras.saving.register_keras_serializable(package="MyLayers")
class CustomLayer(keras.layers.Layer):
    def __init__(self, factor, **kwargs):
        super().__init__(**kwargs)
        self.factor = factor

    def call(self, x):
        return x * self.factor

    def get_config(self):
        return {**super().get_config(), "factor": self.factor}


@keras.saving.register_keras_serializable(package="my_package", name="custom_fn")
def custom_fn(x):
    return x**2


def get_model():
    inputs = keras.Input(shape=(4,))
    mid = CustomLayer(0.5)(inputs)
    outputs = keras.layers.Dense(1, activation=custom_fn)(mid)
    model = keras.Model(inputs, outputs)
    model.compile(optimizer="rmsprop", loss="mean_squared_error")
    return model


x = np.random.random((128, 4)).astype("float32")
y = np.random.random((128, 1)).astype("float32")
model = get_model()
model.fit(x, y, shuffle=False)
path = os.path.join(directory, "custom_model.keras")
model.save(path)
reconstructed_model = keras.models.load_model(path)
np.testing.assert_allclose(model.predict(x), reconstructed_model.predict(x))
more = reconstructed_model.fit(x, y, epochs=2, shuffle=False)

clone = keras.models.clone_model(model)
clone.set_weights(model.get_weights())
clone.compile(optimizer="adam", loss="mse")
cloned = clone.fit(x, y, epochs=1, shuffle=False)

weights = os.path.join(directory, "w.weights.h5")
model.save_weights(weights)
other = get_model()
other.load_weights(weights)
from_json = keras.models.model_from_json(model.to_json())
from_json.set_weights(other.get_weights())

checkpoint = tf.train.Checkpoint(model=reconstructed_model)
saved = checkpoint.save(os.path.join(directory, "tf", "ckpt"))
before = float(np.abs(reconstructed_model.get_weights()[0]).sum())
reconstructed_model.set_weights([w * 0 for w in reconstructed_model.get_weights()])
checkpoint.restore(saved)
after = float(np.abs(reconstructed_model.get_weights()[0]).sum())
assert before == after
print(
    "RESULT",
    json.dumps(
        {
            "more": more.history["loss"],
            "cloned": cloned.history["loss"],
            "other": other.predict(x[:3]).tolist(),
            "json": from_json.predict(x[:3]).tolist(),
            "sum": after,
        }
    ),
)
