# SPDX-License-Identifier: Apache-2.0
"""A Keras script for MultiWorkerMirroredStrategy, and the same script with dtjob's own calls.

The comments "before" are the lines of the first script. It runs in a job as it is, with checkpoints and resume. Three
lines are new. `dt.fit` saves the model of the chief alone, and it takes data functions (see big_input.py).
"""

from pathlib import Path

import keras
import numpy as np

import dtjob_trainer as dt  # new

digits = np.load(Path(__file__).with_name("digits.npz"))
images, labels = digits["images"].reshape(-1, 64) / 16.0, digits["target"]
x, y, xv, yv = images[360:], labels[360:], images[:360], labels[:360]

# before: strategy = tf.distribute.MultiWorkerMirroredStrategy()
# before: with strategy.scope():                     (the job makes the strategy, and everything is in its scope)
model = keras.Sequential([
    keras.Input((64,)),
    keras.layers.Dense(128, activation="relu"),
    keras.layers.Dropout(0.2),
    keras.layers.Dense(10, activation="softmax"),
])
model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])

callbacks = [
    keras.callbacks.EarlyStopping("val_loss", patience=8, restore_best_weights=True),
    keras.callbacks.ReduceLROnPlateau("val_loss", factor=0.5, patience=3),
    # before: keras.callbacks.BackupAndRestore("/backup")                              (the job's checkpoint does that)
]
# before: history = model.fit(x, y, batch_size=64, epochs=40, validation_data=(xv, yv), callbacks=callbacks)
# before: model.save("model.keras")                                                     (in every worker, each its own)
history = dt.fit(model, x, y, batch_size=64, epochs=40, validation_data=(xv, yv), callbacks=callbacks,
                 save="model.keras")  # new
if dt.is_chief():  # new
    print(f"held-out accuracy {max(history.history['val_accuracy']):.4f}")
