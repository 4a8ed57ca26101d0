# SPDX-License-Identifier: Apache-2.0
"""Keras' guide on fit: PyDataset, several inputs and outputs, add_loss, class and sample weights, schedules."""

import json

import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops

keras.utils.set_random_seed(3)
rng = np.random.default_rng(5)
x = rng.random((256, 16)).astype("float32")
y = (x.sum(axis=1) * 2).astype("int64") % 4
found = {}


class ActivityRegularizationLayer(layers.Layer):
    def call(self, inputs):
        self.add_loss(ops.sum(inputs) * 0.001)
        return inputs


class CategoricalTruePositives(keras.metrics.Metric):
    def __init__(self, name="categorical_true_positives", **kwargs):
        super().__init__(name=name, **kwargs)
        self.true_positives = self.add_variable(shape=(), name="ctp", initializer="zeros")

    def update_state(self, y_true, y_pred, sample_weight=None):
        y_pred = ops.reshape(ops.argmax(y_pred, axis=1), (-1, 1))
        values = ops.cast(y_true, "int32") == ops.cast(y_pred, "int32")
        values = ops.cast(values, "float32")
        if sample_weight is not None:
            values = ops.multiply(values, ops.cast(sample_weight, "float32"))
        self.true_positives.assign_add(ops.sum(values))

    def result(self):
        return self.true_positives + 0.0  # else it is the variable's memory, which the validation writes to

    def reset_state(self):
        self.true_positives.assign(0)


def get_model(regularized=False):
    inputs = keras.Input(shape=(16,), name="digits")
    h = layers.Dense(16, activation="relu", name="dense_1")(inputs)
    if regularized:
        h = ActivityRegularizationLayer()(h)
    outputs = layers.Dense(4, activation="softmax", name="predictions")(h)
    return keras.Model(inputs=inputs, outputs=outputs)


def custom_mean_squared_error(y_true, y_pred):
    return ops.mean(ops.square(y_true - y_pred), axis=-1)


schedule = keras.optimizers.schedules.ExponentialDecay(0.01, decay_steps=20, decay_rate=0.9, staircase=True)
model = get_model(regularized=True)
model.compile(
    optimizer=keras.optimizers.RMSprop(schedule),
    loss=keras.losses.SparseCategoricalCrossentropy(),
    metrics=["accuracy", CategoricalTruePositives()],
)
found["fit"] = model.fit(x, y[:, None], batch_size=64, epochs=2, validation_split=0.25, shuffle=False).history

model = get_model()
model.compile(optimizer="adam", loss=custom_mean_squared_error)
found["own loss"] = model.fit(x, keras.utils.to_categorical(y, 4), batch_size=64, epochs=1, shuffle=False).history

model = get_model()
model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", weighted_metrics=["accuracy"])
found["classes"] = model.fit(
    x, y, class_weight={0: 1.0, 1: 2.0, 2: 1.0, 3: 0.5}, batch_size=64, epochs=1, shuffle=False
).history
sample_weight = np.ones(shape=(len(y),))
sample_weight[y == 2] = 2.0
found["weights"] = model.fit(x, y, sample_weight=sample_weight, batch_size=64, epochs=1, shuffle=False).history
weighted = tf.data.Dataset.from_tensor_slices((x, y, sample_weight)).batch(64)
found["dataset"] = model.fit(weighted, epochs=1).history


class ExamplePyDataset(keras.utils.PyDataset):
    def __init__(self, x, y, batch_size, **kwargs):
        super().__init__(**kwargs)
        self.x, self.y, self.batch_size = x, y, batch_size

    def __len__(self):
        return int(np.ceil(len(self.x) / float(self.batch_size)))

    def __getitem__(self, idx):
        part = slice(idx * self.batch_size, (idx + 1) * self.batch_size)
        return self.x[part], self.y[part]


found["pydataset"] = model.fit(ExamplePyDataset(x, y, 48), epochs=1, shuffle=False).history

image_input = keras.Input(shape=(8, 8, 3), name="img_input")
timeseries_input = keras.Input(shape=(None, 5), name="ts_input")
x1 = layers.GlobalMaxPooling2D()(layers.Conv2D(3, 3)(image_input))
x2 = layers.GlobalMaxPooling1D()(layers.Conv1D(3, 3)(timeseries_input))
both = layers.concatenate([x1, x2])
score_output = layers.Dense(1, name="score_output")(both)
class_output = layers.Dense(3, name="class_output")(both)
model = keras.Model(inputs=[image_input, timeseries_input], outputs=[score_output, class_output])
model.compile(
    optimizer=keras.optimizers.RMSprop(1e-3),
    loss={
        "score_output": keras.losses.MeanSquaredError(),
        "class_output": keras.losses.CategoricalCrossentropy(from_logits=True),
    },
    metrics={
        "score_output": [keras.metrics.MeanAbsolutePercentageError(), keras.metrics.MeanAbsoluteError()],
        "class_output": [keras.metrics.CategoricalAccuracy()],
    },
    loss_weights={"score_output": 2.0, "class_output": 1.0},
)
img, ts = rng.random((96, 8, 8, 3)).astype("float32"), rng.random((96, 12, 5)).astype("float32")
score, classes = rng.random((96, 1)).astype("float32") + 1, keras.utils.to_categorical(rng.integers(0, 3, 96), 3)
found["lists"] = model.fit([img, ts], [score, classes], batch_size=32, epochs=1, shuffle=False).history
dataset = tf.data.Dataset.from_tensor_slices(
    ({"img_input": img, "ts_input": ts}, {"score_output": score, "class_output": classes})
).batch(32)
found["dicts"] = model.fit(dataset, epochs=1).history
predicted = model.predict({"img_input": img[:2], "ts_input": ts[:2]})
found["predicted"] = [part.tolist() for part in predicted]
print("RESULT", json.dumps(found))
