# SPDX-License-Identifier: Apache-2.0
"""A custom training loop: a small GAN learns to write digits. Two models, two optimizers, own noise."""

import argparse
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

import dtjob_trainer as dt

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=3000)
parser.add_argument("--batch-size", type=int, default=96)
options = parser.parse_args()

images = (np.load(Path(__file__).with_name("digits.npz"))["images"] / 16.0).reshape(-1, 64).astype("float32")
LATENT = 16

generator = keras.Sequential([
    keras.Input((LATENT,)),
    keras.layers.Dense(128, activation="relu"),
    keras.layers.Dense(128, activation="relu"),
    keras.layers.Dense(64, activation="sigmoid"),
])
discriminator = keras.Sequential([
    keras.Input((64,)),
    keras.layers.Dense(128, activation="leaky_relu"),
    keras.layers.Dropout(0.3),
    keras.layers.Dense(128, activation="leaky_relu"),
    keras.layers.Dropout(0.3),
    keras.layers.Dense(1),
])
generator_optimizer = keras.optimizers.Adam(2e-4, beta_1=0.5)
generator_optimizer.build(generator.trainable_variables)
discriminator_optimizer = keras.optimizers.Adam(2e-4, beta_1=0.5)
discriminator_optimizer.build(discriminator.trainable_variables)
noise = keras.random.SeedGenerator(1)  # a seed that the checkpoint keeps


def cross_entropy(target, logits):
    """This replica's part of the mean over the global batch."""
    losses = tf.nn.sigmoid_cross_entropy_with_logits(tf.fill(tf.shape(logits), target), logits)
    return tf.reduce_sum(losses) / options.batch_size


def train_step(real):
    """One step of one replica: `real` is its share of the batch."""
    latent = keras.random.normal((tf.shape(real)[0], LATENT), seed=noise)
    with tf.GradientTape() as generator_tape, tf.GradientTape() as discriminator_tape:
        written = generator(latent, training=True)
        on_real, on_written = discriminator(real, training=True), discriminator(written, training=True)
        generator_loss = cross_entropy(1.0, on_written)
        discriminator_loss = cross_entropy(0.9, on_real) + cross_entropy(0.0, on_written)
    gradients = generator_tape.gradient(generator_loss, generator.trainable_variables)
    generator_optimizer.apply_gradients(zip(gradients, generator.trainable_variables, strict=True))
    gradients = discriminator_tape.gradient(discriminator_loss, discriminator.trainable_variables)
    discriminator_optimizer.apply_gradients(zip(gradients, discriminator.trainable_variables, strict=True))
    return {"loss": generator_loss, "discriminator": discriminator_loss}


def distance(written):
    """Mean distance from an image to the nearest digit of the data set; uniform noise has 3.5, a digit 1.0."""
    squares = np.sum(written**2, axis=1)[:, None] + np.sum(images**2, axis=1) - 2 * written @ images.T
    return float(np.mean(np.sqrt(np.maximum(squares.min(axis=1), 0))))


dt.train(
    train_step,
    images,
    batch_size=options.batch_size,
    variables={
        "generator": generator,
        "discriminator": discriminator,
        "optimizers": [generator_optimizer, discriminator_optimizer],
        "noise": noise,
    },
    total_steps=options.steps,
)
dt.save(generator, "generator.keras")
if dt.is_chief():
    written = generator(np.random.default_rng(0).normal(size=(200, LATENT)).astype("float32"), training=False).numpy()
    for row in written[:8].reshape(8, 8, 8).transpose(1, 0, 2):
        print("  ".join("".join(" .:*#"[min(int(value * 5), 4)] * 2 for value in digit) for digit in row))
    print(f"distance to the nearest digit {distance(written):.2f}")
