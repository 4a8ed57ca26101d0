# SPDX-License-Identifier: Apache-2.0
"""Two views of each image against all others: a step of its own with a loss of pairs, then a linear probe."""

import json

import keras
import numpy as np
from keras import layers, ops
import tensorflow as tf

keras.utils.set_random_seed(23)
rng = np.random.default_rng(15)
images = rng.random((96, 8, 8, 1)).astype("float32")
labels = (images[:, :4].mean(axis=(1, 2, 3)) > 0.5).astype("int64")
noisy = (images + 0.1 * rng.normal(size=images.shape)).astype("float32")
pairs = tf.data.Dataset.from_tensor_slices((images, noisy)).batch(24)


def encoder():
    return keras.Sequential(
        [keras.Input((8, 8, 1)), layers.Conv2D(4, 3, activation="tanh"), layers.Flatten(), layers.Dense(8)]
    )


class ContrastiveModel(keras.Model):
    def __init__(self):
        super().__init__()
        self.temperature = 0.1
        self.encoder = encoder()
        self.projection_head = keras.Sequential(
            [keras.Input((8,)), layers.Dense(8, activation="tanh"), layers.Dense(8)]
        )
        self.linear_probe = keras.Sequential([layers.Input(shape=(8,)), layers.Dense(2)])

    def compile(self, contrastive_optimizer, **kwargs):
        super().compile(**kwargs)
        self.contrastive_optimizer = contrastive_optimizer
        self.contrastive_loss_tracker = keras.metrics.Mean(name="c_loss")
        self.contrastive_accuracy = keras.metrics.SparseCategoricalAccuracy(name="c_acc")

    @property
    def metrics(self):
        return [self.contrastive_loss_tracker, self.contrastive_accuracy]

    def contrastive_loss(self, projections_1, projections_2):
        projections_1 = ops.normalize(projections_1, axis=1)
        projections_2 = ops.normalize(projections_2, axis=1)
        similarities = ops.matmul(projections_1, ops.transpose(projections_2)) / self.temperature
        batch_size = ops.shape(projections_1)[0]
        contrastive_labels = ops.arange(batch_size)
        self.contrastive_accuracy.update_state(contrastive_labels, similarities)
        loss_1_2 = keras.losses.sparse_categorical_crossentropy(contrastive_labels, similarities, from_logits=True)
        loss_2_1 = keras.losses.sparse_categorical_crossentropy(
            contrastive_labels, ops.transpose(similarities), from_logits=True
        )
        return ops.mean((loss_1_2 + loss_2_1) / 2)

    def train_step(self, data):
        one, other = data
        with tf.GradientTape() as tape:
            projections_1 = self.projection_head(self.encoder(one, training=True), training=True)
            projections_2 = self.projection_head(self.encoder(other, training=True), training=True)
            loss = self.contrastive_loss(projections_1, projections_2)
        weights = self.encoder.trainable_weights + self.projection_head.trainable_weights
        gradients = tape.gradient(loss, weights)
        self.contrastive_optimizer.apply_gradients(zip(gradients, weights))
        self.contrastive_loss_tracker.update_state(loss)
        return {"c_loss": self.contrastive_loss_tracker.result()}


model = ContrastiveModel()
model.compile(contrastive_optimizer=keras.optimizers.Adam())
history = model.fit(pairs, epochs=2)
probe = keras.Sequential([layers.Input((8, 8, 1)), model.encoder, layers.Dense(2)])
probe.compile(
    optimizer=keras.optimizers.Adam(),
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["acc"],
)
probed = probe.fit(images, labels, batch_size=24, epochs=2, shuffle=False)
print("RESULT", json.dumps({"loss": history.history["c_loss"], "probe": probed.history}))
