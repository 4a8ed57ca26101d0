# SPDX-License-Identifier: Apache-2.0
"""Models saved and loaded inside and outside of the strategy's scope, in Keras' format and as SavedModel."""

import json
import os
import tempfile

import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(2)
mirrored_strategy = tf.distribute.MirroredStrategy()
rng = np.random.default_rng(0)
x = rng.random((256, 6)).astype("float32")
y = (x.sum(axis=1) > 3).astype("int64")


def get_model():
    with mirrored_strategy.scope():
        model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(16, "relu"), keras.layers.Dense(2)])
        model.compile(
            loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            optimizer=keras.optimizers.Adam(),
            metrics=[keras.metrics.SparseCategoricalAccuracy()],
        )
        return model


directory = tempfile.mkdtemp()
train_dataset = (
    tf.data.Dataset.from_tensor_slices((x[:192], y[:192]))
    .shuffle(192, seed=1, reshuffle_each_iteration=False)
    .batch(32)
)
eval_dataset = tf.data.Dataset.from_tensor_slices((x[192:], y[192:])).batch(32)
model = get_model()
model.fit(train_dataset, epochs=2)
found = [model.evaluate(eval_dataset)]

keras_model_path = os.path.join(directory, "model.keras")
model.save(keras_model_path)
restored = keras.models.load_model(keras_model_path)
restored.fit(train_dataset, epochs=1)
found.append(restored.evaluate(eval_dataset))

another_strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
with another_strategy.scope():
    again = keras.models.load_model(keras_model_path)
    again.fit(train_dataset, epochs=1)
found.append(again.evaluate(eval_dataset))

export_path = os.path.join(directory, "export")
model.export(export_path)
loaded = tf.saved_model.load(export_path)
exported = loaded.serve(x[:4]).numpy()

saved_model_path = os.path.join(directory, "tf_save")
tf.saved_model.save(model, saved_model_path)
inference = tf.saved_model.load(saved_model_path).signatures["serving_default"]
(served,) = inference(tf.constant(x[:4])).values()

weights_path = os.path.join(directory, "only.weights.h5")
model.save_weights(weights_path)
fresh = get_model()
fresh.load_weights(weights_path)
found.append(fresh.evaluate(eval_dataset))

config = keras.Sequential.from_config(model.get_config())
config.set_weights(model.get_weights())
predicted = config.predict(x[:4])
print(
    "RESULT",
    json.dumps(
        {
            "found": found,
            "exported": exported.tolist(),
            "served": served.numpy().tolist(),
            "predicted": predicted.tolist(),
        }
    ),
)
