# SPDX-License-Identifier: Apache-2.0
"""FeatureSpace over a table, in the pipeline for training and in the model for strings."""

import json

import keras
import numpy as np
import tensorflow as tf
from keras.utils import FeatureSpace

keras.utils.set_random_seed(3)
rng = np.random.default_rng(7)
rows = 240
table = {
    "age": rng.integers(20, 80, rows).astype("int64"),
    "sex": rng.integers(0, 2, rows).astype("int64"),
    "thal": rng.choice(["fixed", "normal", "reversible"], rows),
    "chol": rng.normal(200, 40, rows).astype("float32"),
}
target = ((table["age"] > 50) ^ (table["thal"] == "normal")).astype("float32")


def dataset_of(part):
    ds = tf.data.Dataset.from_tensor_slices(({name: column[part] for name, column in table.items()}, target[part]))
    return ds.shuffle(buffer_size=rows, seed=4, reshuffle_each_iteration=False)


train_ds = dataset_of(slice(0, 180)).batch(32)
val_ds = dataset_of(slice(180, rows)).batch(32)
feature_space = FeatureSpace(
    features={
        "sex": FeatureSpace.integer_categorical(num_oov_indices=0),
        "thal": FeatureSpace.string_categorical(num_oov_indices=0),
        "age": FeatureSpace.float_discretized(num_bins=8),
        "chol": FeatureSpace.float_normalized(),
    },
    crosses=[FeatureSpace.cross(feature_names=("sex", "age"), crossing_dim=16)],
    output_mode="concat",
)
feature_space.adapt(train_ds.map(lambda x, _: x))
preprocessed_train_ds = train_ds.map(lambda x, y: (feature_space(x), y), num_parallel_calls=tf.data.AUTOTUNE)
preprocessed_train_ds = preprocessed_train_ds.prefetch(tf.data.AUTOTUNE)
preprocessed_val_ds = val_ds.map(lambda x, y: (feature_space(x), y), num_parallel_calls=tf.data.AUTOTUNE)
preprocessed_val_ds = preprocessed_val_ds.prefetch(tf.data.AUTOTUNE)

dict_inputs = feature_space.get_inputs()
encoded_features = feature_space.get_encoded_features()
x = keras.layers.Dense(32, activation="relu")(encoded_features)
predictions = keras.layers.Dense(1, activation="sigmoid")(x)
training_model = keras.Model(inputs=encoded_features, outputs=predictions)
training_model.compile(optimizer="adam", loss="binary_crossentropy", metrics=["accuracy"])
inference_model = keras.Model(inputs=dict_inputs, outputs=predictions)
history = training_model.fit(preprocessed_train_ds, epochs=3, validation_data=preprocessed_val_ds, verbose=2)
sample = {"age": 60, "sex": 1, "thal": "fixed", "chol": 233.0}
predicted = inference_model.predict({name: tf.convert_to_tensor([value]) for name, value in sample.items()})
print("RESULT", json.dumps({"history": history.history, "predicted": predicted.tolist()}))
