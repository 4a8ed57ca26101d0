"""Trains on a PyDataset that shuffles its examples at epochs' ends; a pass of 12 batches spans epochs of 5 steps."""

import keras
import numpy as np

import dtjob_trainer as dt

x, y = np.ones((48, 3), "float32"), np.ones((48, 1), "float32")


class Batches(keras.utils.PyDataset):
    order = np.arange(48)

    def __len__(self):
        return 12

    def __getitem__(self, index):
        rows = self.order[index * 4 : index * 4 + 4]
        return x[rows], y[rows]

    def on_epoch_end(self):
        self.order = np.random.permutation(48)


model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
model.compile("sgd", "mse")
dt.fit(model, Batches(), epochs=4, steps_per_epoch=5)
