# SPDX-License-Identifier: Apache-2.0
"""Windows of a series by timeseries_dataset_from_array, an LSTM, and predictions batch by batch."""

import json
import os
import tempfile

import keras
import numpy as np

keras.utils.set_random_seed(3)
steps = np.arange(600)
noise = np.random.default_rng(11).normal(scale=0.1, size=(600, 3))
features = (np.sin(steps[:, None] / [7.0, 11.0, 17.0]) + noise).astype("float32")
mean, std = features[:400].mean(axis=0), features[:400].std(axis=0)
features = (features - mean) / std
past, future, batch_size = 24, 6, 32
x_train, y_train = features[:400], features[past + future : 400 + past + future, [1]]
x_val, y_val = features[430 : 600 - past - future], features[430 + past + future :, [1]]
dataset_train = keras.preprocessing.timeseries_dataset_from_array(
    x_train, y_train, sequence_length=12, sampling_rate=2, batch_size=batch_size
)
dataset_val = keras.preprocessing.timeseries_dataset_from_array(
    x_val, y_val, sequence_length=12, sampling_rate=2, batch_size=batch_size
)
for batch in dataset_train.take(1):
    inputs, targets = batch
print("Input shape:", inputs.numpy().shape)
inputs = keras.layers.Input(shape=(inputs.shape[1], inputs.shape[2]))
lstm_out = keras.layers.LSTM(8)(inputs)
outputs = keras.layers.Dense(1)(lstm_out)
model = keras.Model(inputs=inputs, outputs=outputs)
model.compile(optimizer=keras.optimizers.Adam(learning_rate=0.01), loss="mse")
model.summary()
path = os.path.join(tempfile.mkdtemp(), "model_checkpoint.weights.h5")
es_callback = keras.callbacks.EarlyStopping(monitor="val_loss", min_delta=0, patience=5)
modelckpt_callback = keras.callbacks.ModelCheckpoint(
    monitor="val_loss", filepath=path, verbose=1, save_weights_only=True, save_best_only=True
)
history = model.fit(dataset_train, epochs=3, validation_data=dataset_val, callbacks=[es_callback, modelckpt_callback])
predicted = [float(model.predict(x)[0][0]) for x, y in dataset_val.take(2)]
model.load_weights(path)
best = model.evaluate(dataset_val)
print("RESULT", json.dumps({"history": history.history, "predicted": predicted, "best": best}))
