# SPDX-License-Identifier: Apache-2.0
"""A small GAN with a train_step of its own and two optimizers, one of them a MultiOptimizer, which waits for --gate."""

import argparse
import time
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

import dtjob_trainer as dt

parser = argparse.ArgumentParser()
parser.add_argument("--gate", type=Path, required=True)
parser.add_argument("--hold", type=int, required=True, help="wait at the begin of this epoch")
options = parser.parse_args()
layers, optimizers = keras.layers, keras.optimizers


class GAN(keras.Model):
    """Without `call`, as that of Keras's guide."""

    def __init__(self):
        super().__init__()
        self.generator = keras.Sequential([keras.Input((3,)), layers.Dense(8, "tanh"), layers.Dense(4, name="last")])
        self.critic = keras.Sequential(
            [keras.Input((4,)), layers.Dense(8, "tanh"), layers.Dropout(0.2), layers.Dense(1)]
        )
        self.noise = keras.random.SeedGenerator(1)
        self.generated, self.judged = keras.metrics.Mean(name="generated"), keras.metrics.Mean(name="judged")

    @property
    def metrics(self):
        return [self.generated, self.judged]

    def compile(self, **optimizers):
        super().compile()
        self.by_name = optimizers

    def train_step(self, real):
        real = keras.tree.flatten(real)[0]
        latent = keras.random.normal((tf.shape(real)[0], 3), seed=self.noise)
        real += 0.1 * keras.random.normal(tf.shape(real))  # of the generator that Keras keeps for those without a seed
        with tf.GradientTape(persistent=True) as tape:
            written = self.generator(latent, training=True)
            on_written, on_real = self.critic(written, training=True), self.critic(real, training=True)
            generated = tf.reduce_mean(tf.nn.softplus(-on_written))
            judged = tf.reduce_mean(tf.nn.softplus(on_written) + tf.nn.softplus(-on_real))
        for name, model, loss in (("generator", self.generator, generated), ("critic", self.critic, judged)):
            weights = model.trainable_weights
            self.by_name[name].apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        self.generated.update_state(generated)
        self.judged.update_state(judged)
        return {metric.name: metric.result() for metric in self.metrics}


class Hold(keras.callbacks.Callback):
    """Lets a test act at a known step."""

    def on_epoch_begin(self, epoch, logs=None):
        while epoch == options.hold and not options.gate.exists():
            time.sleep(0.01)

    def get_state(self):
        return {}

    def set_state(self, state):
        pass


model = GAN()
each = optimizers.OptimizerMap(optimizers.Adam(0.01), {"last/.*": optimizers.SGD(0.01, momentum=0.9)})
model.compile(generator=optimizers.MultiOptimizer(each), critic=optimizers.Adam(0.01))
rows = np.random.default_rng(0).normal(size=(80, 4)).astype("float32")
dt.fit(model, rows, batch_size=16, epochs=4, callbacks=[Hold()])
