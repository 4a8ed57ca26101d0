"""An existing Keras script, before and after: the lines that were are the comments, the three marked ones are new.

Where `Model.fit` works (Default, OneDevice, Mirrored, CentralStorage) the old script runs in a job as it is, but each
restart begins anew. With dtjob_trainer.fit it trains under every strategy, and goes on where it was.
"""

import keras
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import dtjob_trainer as dt  # new

digits = load_digits()
x, xv, y, yv = train_test_split(digits.data / 16.0, digits.target, test_size=0.2, random_state=0)

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
