# SPDX-License-Identifier: Apache-2.0
"""TextVectorization adapted, a model of integers, then a model of strings from end to end."""

import json
import re
import string

import keras
import numpy as np
import tensorflow as tf
from keras import layers

keras.utils.set_random_seed(1337)
rng = np.random.default_rng(0)
good, bad = ["great", "wonderful", "fine", "lovely"], ["awful", "boring", "poor", "dull"]
other = ["the", "film", "was", "a", "story", "with", "actors", "and<br />", "Music!"]
texts, labels = [], []
for number in range(240):
    label = number % 2
    words = list(rng.choice(other, 8)) + list(rng.choice(good if label else bad, 3))
    rng.shuffle(words)
    texts.append(" ".join(words))
    labels.append(label)
batch_size = 32
raw = tf.data.Dataset.from_tensor_slices((texts, labels))
raw_train_ds, raw_val_ds, raw_test_ds = (
    raw.take(160).batch(batch_size),
    raw.skip(160).take(40).batch(batch_size),
    raw.skip(200).batch(batch_size),
)


@keras.saving.register_keras_serializable()
def custom_standardization(input_data):
    lowercase = tf.strings.lower(input_data)
    stripped_html = tf.strings.regex_replace(lowercase, "<br />", " ")
    return tf.strings.regex_replace(stripped_html, f"[{re.escape(string.punctuation)}]", "")


vectorize_layer = keras.layers.TextVectorization(
    standardize=custom_standardization, max_tokens=50, output_mode="int", output_sequence_length=12
)
vectorize_layer.adapt(raw_train_ds.map(lambda x, y: x))


def vectorize_text(text, label):
    text = tf.expand_dims(text, -1)
    return vectorize_layer(text), label


train_ds = raw_train_ds.map(vectorize_text).cache().prefetch(buffer_size=10)
val_ds = raw_val_ds.map(vectorize_text).cache().prefetch(buffer_size=10)
test_ds = raw_test_ds.map(vectorize_text).cache().prefetch(buffer_size=10)

inputs = keras.Input(shape=(None,), dtype="int64")
x = layers.Embedding(50, 16)(inputs)
x = layers.Conv1D(16, 7, padding="valid", activation="relu", strides=3)(x)
x = layers.GlobalMaxPooling1D()(x)
x = layers.Dense(16, activation="relu")(x)
predictions = layers.Dense(1, activation="sigmoid", name="predictions")(x)
model = keras.Model(inputs, predictions)
model.compile(loss="binary_crossentropy", optimizer="adam", metrics=["accuracy"])
history = model.fit(train_ds, validation_data=val_ds, epochs=3)
test = model.evaluate(test_ds)

inputs = keras.Input(shape=(1,), dtype="string")
indices = vectorize_layer(inputs)
outputs = model(indices)
end_to_end_model = keras.Model(inputs, outputs)
end_to_end_model.compile(loss="binary_crossentropy", optimizer="adam", metrics=["accuracy"])
whole = end_to_end_model.evaluate(raw_test_ds)
further = end_to_end_model.fit(raw_train_ds, epochs=1)
spoken = end_to_end_model.predict(tf.constant([["the film was great"], ["a boring story"]]))
print(
    "RESULT",
    json.dumps(
        {
            "history": history.history,
            "test": test,
            "whole": whole,
            "further": further.history,
            "spoken": spoken.tolist(),
        }
    ),
)
