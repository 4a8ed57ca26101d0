# SPDX-License-Identifier: Apache-2.0
"""Few frauds among many rows: class weights, metrics of counts, oversampling by sample_from_datasets."""

import json
import os
import tempfile

import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(3)
rng = np.random.default_rng(10)
features = rng.normal(size=(600, 8)).astype("float32")
targets = (features[:, 0] + features[:, 1] > 2.2).astype("uint8")[:, None]
train_features, val_features = features[:480], features[480:]
train_targets, val_targets = targets[:480], targets[480:]
counts = np.bincount(train_targets[:, 0])
print("Number of positive samples in training data: {}".format(counts[1]))
weight_for_0, weight_for_1 = 1.0 / counts[0], 1.0 / counts[1]
mean, std = np.mean(train_features, axis=0), np.std(train_features, axis=0)
train_features = (train_features - mean) / std
val_features = (val_features - mean) / std


def make_model(output_bias=None):
    if output_bias is not None:
        output_bias = keras.initializers.Constant(output_bias)
    model = keras.Sequential(
        [
            keras.Input(shape=train_features.shape[1:]),
            keras.layers.Dense(16, activation="relu"),
            keras.layers.Dense(1, activation="sigmoid", bias_initializer=output_bias),
        ]
    )
    model.compile(
        optimizer=keras.optimizers.Adam(1e-2),
        loss="binary_crossentropy",
        metrics=[
            keras.metrics.FalseNegatives(name="fn"),
            keras.metrics.TruePositives(name="tp"),
            keras.metrics.Precision(name="precision"),
            keras.metrics.Recall(name="recall"),
            keras.metrics.AUC(name="prc", curve="PR"),
        ],
    )
    return model


model = make_model(output_bias=np.log([counts[1] / counts[0]]))
directory = tempfile.mkdtemp()
initial_weights = os.path.join(directory, "initial_weights.weights.h5")
model.save_weights(initial_weights)
plain = model.fit(
    train_features,
    train_targets,
    batch_size=96,
    epochs=3,
    callbacks=[keras.callbacks.EarlyStopping(monitor="val_prc", patience=10, mode="max", restore_best_weights=True)],
    validation_data=(val_features, val_targets),
    shuffle=False,
)
weighted_model = make_model()
weighted_model.load_weights(initial_weights)
weighted = weighted_model.fit(
    train_features,
    train_targets,
    batch_size=96,
    epochs=2,
    verbose=2,
    validation_data=(val_features, val_targets),
    class_weight={0: weight_for_0, 1: weight_for_1},
    shuffle=False,
)
predictions = weighted_model.predict(val_features, batch_size=64)

bool_train = train_targets[:, 0] != 0


def make_ds(features, labels):
    return (
        tf.data.Dataset.from_tensor_slices((features, labels))
        .shuffle(500, seed=1, reshuffle_each_iteration=False)
        .repeat()
    )


resampled_ds = tf.data.Dataset.sample_from_datasets(
    [
        make_ds(train_features[bool_train], train_targets[bool_train]),
        make_ds(train_features[~bool_train], train_targets[~bool_train]),
    ],
    weights=[0.5, 0.5],
    seed=3,
)
resampled_ds = resampled_ds.batch(64).prefetch(2)
val_ds = tf.data.Dataset.from_tensor_slices((val_features, val_targets)).cache().batch(64).prefetch(2)
resampled_model = make_model()
resampled_model.load_weights(initial_weights)
output_layer = resampled_model.layers[-1]
output_layer.bias.assign([0])
resampled = resampled_model.fit(resampled_ds, epochs=2, steps_per_epoch=8, validation_data=val_ds)
print(
    "RESULT",
    json.dumps(
        {
            "plain": plain.history,
            "weighted": weighted.history,
            "predictions": predictions.tolist(),
            "resampled": resampled.history,
        }
    ),
)
