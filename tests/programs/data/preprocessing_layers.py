# SPDX-License-Identifier: Apache-2.0
"""Normalization, Discretization, StringLookup and IntegerLookup adapted, and put into the model."""

import json

import keras
import numpy as np
import tensorflow as tf
from keras import layers

keras.utils.set_random_seed(3)
rng = np.random.default_rng(8)
rows = 200
frame = {
    "type": rng.choice(["cat", "dog"], rows),
    "age": rng.integers(0, 12, rows).astype("int64"),
    "fee": rng.normal(50, 20, rows).astype("float32"),
    "photos": rng.integers(0, 9, rows).astype("float32"),
}
target = ((frame["type"] == "cat") & (frame["fee"] > 45)).astype("int64")


def df_to_dataset(part, shuffle=True, batch_size=32):
    data = {key: value[part][:, None] for key, value in frame.items()}
    ds = tf.data.Dataset.from_tensor_slices((data, target[part]))
    if shuffle:
        ds = ds.shuffle(buffer_size=rows, seed=1, reshuffle_each_iteration=False)
    return ds.batch(batch_size).prefetch(batch_size)


train_ds = df_to_dataset(slice(0, 150))
val_ds = df_to_dataset(slice(150, rows), shuffle=False)
all_inputs, encoded_features = {}, []
for header in ["photos", "fee"]:
    numeric_col = keras.Input(shape=(1,), name=header)
    normalizer = layers.Normalization(axis=None)
    normalizer.adapt(train_ds.map(lambda x, y, header=header: x[header]))
    all_inputs[header] = numeric_col
    encoded_features.append(normalizer(numeric_col))
age_col = keras.Input(shape=(1,), name="age", dtype="int64")
lookup = layers.IntegerLookup(max_tokens=8)
lookup.adapt(train_ds.map(lambda x, y: x["age"]))
encoded_features.append(
    layers.CategoryEncoding(num_tokens=lookup.vocabulary_size(), output_mode="multi_hot")(lookup(age_col))
)
all_inputs["age"] = age_col
type_col = keras.Input(shape=(1,), name="type", dtype="string")
index = layers.StringLookup()
index.adapt(frame["type"])
encoded_features.append(
    layers.CategoryEncoding(num_tokens=index.vocabulary_size(), output_mode="multi_hot")(index(type_col))
)
all_inputs["type"] = type_col
x = layers.concatenate(encoded_features)
x = layers.Dense(16, activation="relu")(x)
output = layers.Dense(1)(x)
model = keras.Model(all_inputs, output)
model.compile(optimizer="adam", loss=keras.losses.BinaryCrossentropy(from_logits=True), metrics=["accuracy"])
history = model.fit(train_ds, epochs=3, validation_data=val_ds)
result = model.evaluate(val_ds, return_dict=True)
sample = {"type": "cat", "age": 3, "fee": 60.0, "photos": 2.0}
prediction = model.predict({name: tf.convert_to_tensor([[value]]) for name, value in sample.items()})
print("RESULT", json.dumps({"history": history.history, "result": result, "prediction": prediction.tolist()}))
