# SPDX-License-Identifier: Apache-2.0
"""A strategy of its own, Model.fit with callbacks, evaluate, and a model that is loaded again."""

import json
import os
import tempfile

import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(3)
strategy = tf.distribute.MirroredStrategy()
print("Number of devices: {}".format(strategy.num_replicas_in_sync))

rng = np.random.default_rng(0)
images = rng.integers(0, 255, size=(512, 12, 12, 1)).astype("uint8")
labels = (images.reshape(512, -1)[:, :72].mean(axis=1) > images.reshape(512, -1)[:, 72:].mean(axis=1)).astype("int64")
BUFFER_SIZE = 512
BATCH_SIZE = 32


def scale(image, label):
    return tf.cast(image, tf.float32) / 255, label


train = tf.data.Dataset.from_tensor_slices((images[:400], labels[:400]))
train_dataset = train.map(scale).cache().shuffle(BUFFER_SIZE, seed=1, reshuffle_each_iteration=False).batch(BATCH_SIZE)
eval_dataset = tf.data.Dataset.from_tensor_slices((images[400:], labels[400:])).map(scale).batch(BATCH_SIZE)

with strategy.scope():
    model = keras.Sequential(
        [
            keras.layers.Conv2D(8, 3, activation="relu", input_shape=(12, 12, 1)),
            keras.layers.MaxPooling2D(),
            keras.layers.Flatten(),
            keras.layers.Dense(16, activation="relu"),
            keras.layers.Dense(2),
        ]
    )
    model.compile(
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        optimizer=keras.optimizers.Adam(),
        metrics=["accuracy"],
    )

checkpoint_dir = os.path.join(tempfile.mkdtemp(), "training_checkpoints")
checkpoint_prefix = os.path.join(checkpoint_dir, "ckpt_{epoch}.weights.h5")


def decay(epoch):
    if epoch < 2:
        return 1e-2
    return 1e-3


class PrintLR(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        print("\nLearning rate for epoch {} is {}".format(epoch + 1, self.model.optimizer.learning_rate.numpy()))


callbacks = [
    keras.callbacks.TensorBoard(log_dir=os.path.join(checkpoint_dir, "logs")),
    keras.callbacks.ModelCheckpoint(filepath=checkpoint_prefix, save_weights_only=True),
    keras.callbacks.LearningRateScheduler(decay),
    PrintLR(),
]
history = model.fit(train_dataset, epochs=3, callbacks=callbacks)
eval_loss, eval_acc = model.evaluate(eval_dataset)
path = os.path.join(checkpoint_dir, "my_model.keras")
model.save(path)

unreplicated_model = keras.models.load_model(path)
loss, acc = unreplicated_model.evaluate(eval_dataset)
with strategy.scope():
    replicated_model = keras.models.load_model(path)
    again = replicated_model.evaluate(eval_dataset)
print(
    "RESULT",
    json.dumps(
        {
            "loss": history.history["loss"],
            "accuracy": history.history["accuracy"],
            "eval": [eval_loss, eval_acc],
            "loaded": [loss, acc, *again],
            "weights": float(sum(np.abs(w).sum() for w in model.get_weights())),
        }
    ),
)
