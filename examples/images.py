# SPDX-License-Identifier: Apache-2.0
"""Images whose decoding takes longer than a step of training. Data workers decode them, without a change here.

Each image is made on the spot from its number: a JPEG that is bright or dark. So no files are needed.
"""

import argparse

import keras
import tensorflow as tf

SIZE = 224
parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--images", type=int, default=512)
options = parser.parse_args()


def decode(index):
    """The image with this number, and whether it is bright."""
    label = tf.cast(index % 2, tf.float32)
    noise = tf.random.stateless_uniform((SIZE, SIZE, 3), (index, 1), 0, 128)
    jpeg = tf.io.encode_jpeg(tf.cast(noise + 100.0 * label, tf.uint8))
    image = tf.image.resize(tf.io.decode_jpeg(jpeg, channels=3), (SIZE // 4, SIZE // 4))
    return image / 255.0, label[None]


def images(numbers):
    """A Dataset of the images with these numbers."""
    return tf.data.Dataset.from_tensor_slices(numbers).shuffle(len(numbers)).map(decode, tf.data.AUTOTUNE).batch(32)


model = keras.Sequential([
    keras.layers.Input((SIZE // 4, SIZE // 4, 3)),
    keras.layers.Conv2D(8, 3, strides=2, activation="relu"),
    keras.layers.GlobalAveragePooling2D(),
    keras.layers.Dense(1, activation="sigmoid"),
])  # fmt: skip
model.compile(keras.optimizers.Adam(0.05), "binary_crossentropy", metrics=["accuracy"])
model.fit(
    images(tf.range(options.images).numpy()),
    validation_data=images(tf.range(options.images, options.images + 64).numpy()),
    epochs=options.epochs,
    verbose=2,
)
