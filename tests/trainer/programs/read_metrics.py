"""What callbacks are told of tf_keras's metrics after each batch, against what tf_keras reads by itself."""

import numpy as np
import tensorflow as tf
import tf_keras

import dtjob_trainer as dt
from dtjob_trainer.process import runtime

exchanges = 0
reduce = tf.distribute.Strategy.reduce


def counted(*args, **kwargs):
    global exchanges
    exchanges += 1
    return reduce(*args, **kwargs)


tf.distribute.Strategy.reduce = counted


class Rows(tf_keras.metrics.Metric):
    """The rows of all replicas, and their mean number: two variables that are put together in two ways."""

    def __init__(self):
        super().__init__(name="rows")
        self.seen = self.add_weight(name="seen", initializer="zeros", dtype=tf.int64)
        on_read, mean = tf.VariableSynchronization.ON_READ, tf.VariableAggregation.MEAN
        self.each = self.add_weight(name="each", initializer="zeros", synchronization=on_read, aggregation=mean)

    def update_state(self, y_true, y_pred, sample_weight=None):
        rows = tf.shape(y_true)[0]
        self.seen.assign_add(tf.cast(rows, tf.int64))
        self.each.assign_add(tf.cast(rows, tf.float32))

    def result(self):
        return {"seen": tf.identity(self.seen), "each": tf.identity(self.each)}


class Told(tf_keras.callbacks.Callback):
    batches = 0

    def on_train_batch_begin(self, batch, logs=None):
        self.before = exchanges

    def on_train_batch_end(self, batch, logs=None):
        assert exchanges == self.before, f"{exchanges - self.before} exchanges of tf_keras's own"
        own = {name: float(value) for name, value in self.model.get_metrics_result().items()}
        assert exchanges > self.before or alone, "tf_keras has not read by itself"
        assert logs.keys() == own.keys(), (logs, own)
        for name, value in own.items():
            np.testing.assert_allclose(logs[name], value, rtol=1e-6, err_msg=name)
        assert logs["seen"] == 12 * (batch + 1), logs
        self.batches += 1


alone = dt.strategy().num_replicas_in_sync == 1
random = np.random.default_rng(1)
rows, targets = random.normal(size=(36, 4)).astype("float32"), random.integers(0, 2, (36, 1))
model = tf_keras.Sequential([tf_keras.Input((4,)), tf_keras.layers.Dense(1, activation="sigmoid")])
model.compile("sgd", "binary_crossentropy", metrics=["accuracy", tf_keras.metrics.AUC(), Rows()])
told = Told()
dt.fit(model, rows, targets, batch_size=12, epochs=2, callbacks=[told])
assert told.batches == 6
runtime.current().log("all well")
