# SPDX-License-Identifier: Apache-2.0
"""Triplets of images through one embedding, a distance layer, and a train_step without a call that builds it."""

import json

import keras
import numpy as np
import tensorflow as tf
from keras import layers

keras.utils.set_random_seed(5)
rng = np.random.default_rng(2)
anchors = rng.random((120, 10, 10, 1)).astype("float32")
positives = (anchors + rng.normal(scale=0.05, size=anchors.shape)).astype("float32")
negatives = rng.random((120, 10, 10, 1)).astype("float32")
dataset = tf.data.Dataset.zip(
    (
        tf.data.Dataset.from_tensor_slices(anchors),
        tf.data.Dataset.from_tensor_slices(positives),
        tf.data.Dataset.from_tensor_slices(negatives),
    )
)
dataset = dataset.shuffle(buffer_size=120, seed=1, reshuffle_each_iteration=False)
train_dataset = dataset.take(96).batch(24, drop_remainder=False).prefetch(tf.data.AUTOTUNE)
val_dataset = dataset.skip(96).batch(24, drop_remainder=False).prefetch(tf.data.AUTOTUNE)

embedding = keras.Sequential(
    [keras.Input((10, 10, 1)), layers.Conv2D(4, 3, activation="relu"), layers.Flatten(), layers.Dense(8)],
    name="Embedding",
)


class DistanceLayer(layers.Layer):
    def call(self, anchor, positive, negative):
        ap_distance = tf.reduce_sum(tf.square(anchor - positive), -1)
        an_distance = tf.reduce_sum(tf.square(anchor - negative), -1)
        return ap_distance, an_distance


anchor_input = layers.Input(name="anchor", shape=(10, 10, 1))
positive_input = layers.Input(name="positive", shape=(10, 10, 1))
negative_input = layers.Input(name="negative", shape=(10, 10, 1))
distances = DistanceLayer()(embedding(anchor_input), embedding(positive_input), embedding(negative_input))
siamese_network = keras.Model(inputs=[anchor_input, positive_input, negative_input], outputs=distances)


class SiameseModel(keras.Model):
    def __init__(self, siamese_network, margin=0.5):
        super().__init__()
        self.siamese_network = siamese_network
        self.margin = margin
        self.loss_tracker = keras.metrics.Mean(name="loss")

    def call(self, inputs):
        return self.siamese_network(inputs)

    def train_step(self, data):
        with tf.GradientTape() as tape:
            loss = self._compute_loss(data)
        gradients = tape.gradient(loss, self.siamese_network.trainable_weights)
        self.optimizer.apply_gradients(zip(gradients, self.siamese_network.trainable_weights))
        self.loss_tracker.update_state(loss)
        return {"loss": self.loss_tracker.result()}

    def test_step(self, data):
        loss = self._compute_loss(data)
        self.loss_tracker.update_state(loss)
        return {"loss": self.loss_tracker.result()}

    def _compute_loss(self, data):
        ap_distance, an_distance = self.siamese_network(data)
        loss = ap_distance - an_distance
        return tf.maximum(loss + self.margin, 0.0)

    @property
    def metrics(self):
        return [self.loss_tracker]


siamese_model = SiameseModel(siamese_network)
siamese_model.compile(optimizer=keras.optimizers.Adam(0.001), weighted_metrics=[])
history = siamese_model.fit(train_dataset, epochs=6, validation_data=val_dataset)
sample = next(iter(train_dataset))
anchor, positive, negative = sample
similarity = keras.metrics.CosineSimilarity()(embedding(anchor), embedding(positive)).numpy()
assert np.isfinite(similarity)
print("RESULT", json.dumps({"loss": history.history["loss"], "val": history.history["val_loss"]}))
