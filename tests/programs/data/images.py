# SPDX-License-Identifier: Apache-2.0
"""Images in folders, read by image_dataset_from_directory, with augmentation in the model."""

import json
import os
import tempfile

import keras
import numpy as np
import tensorflow as tf
from keras import layers

keras.utils.set_random_seed(21)
rng = np.random.default_rng(13)
directory = os.path.join(tempfile.mkdtemp(), "pets")
for label in ("cat", "dog"):
    os.makedirs(os.path.join(directory, label))
    for number in range(40):
        image = rng.integers(0, 255, size=(20, 20, 3))
        image[:, :10] //= 1 + (label == "dog")
        keras.utils.save_img(os.path.join(directory, label, f"{number:03}.png"), image, scale=False)

train_ds, val_ds = keras.utils.image_dataset_from_directory(
    directory, validation_split=0.25, subset="both", seed=7, image_size=(16, 16), batch_size=16, shuffle=True
)
class_names = train_ds.class_names
train_ds = train_ds.cache().prefetch(buffer_size=tf.data.AUTOTUNE)
val_ds = val_ds.cache().prefetch(buffer_size=tf.data.AUTOTUNE)


def make_model(input_shape, num_classes):
    inputs = keras.Input(shape=input_shape)
    x = layers.Rescaling(1.0 / 255)(inputs)
    for size in [8, 16]:
        residual = layers.Conv2D(size, 1, strides=2, padding="same")(x)
        x = layers.Activation("relu")(x)
        x = layers.SeparableConv2D(size, 3, padding="same")(x)
        x = layers.MaxPooling2D(3, strides=2, padding="same")(x)
        x = layers.add([x, residual])
    x = layers.GlobalAveragePooling2D()(x)
    return keras.Model(inputs, layers.Dense(num_classes, activation=None)(x))


model = make_model((16, 16, 3), 1)
model.compile(
    optimizer=keras.optimizers.Adam(3e-4),
    loss=keras.losses.BinaryCrossentropy(from_logits=True),
    metrics=[keras.metrics.BinaryAccuracy(name="acc")],
)
history = model.fit(train_ds, epochs=3, callbacks=[], validation_data=val_ds)
img = keras.utils.load_img(os.path.join(directory, "dog", "000.png"), target_size=(16, 16))
img_array = keras.ops.expand_dims(keras.utils.img_to_array(img), 0)
predictions = model.predict(img_array)
score = float(keras.ops.sigmoid(predictions[0][0]))
augment = keras.Sequential(
    [keras.Input((16, 16, 3)), layers.RandomFlip("horizontal", seed=1), layers.RandomRotation(0.1, seed=2)]
)
augmented = train_ds.map(lambda x, y: (augment(x, training=True), y))
more = model.fit(augmented, epochs=1)
print(
    "RESULT",
    json.dumps({"names": len(class_names), "history": history.history, "score": score, "random": more.history}),
)
