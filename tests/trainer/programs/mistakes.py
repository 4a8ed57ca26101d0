# SPDX-License-Identifier: Apache-2.0
"""Programs with a mistake in them: `python mistakes.py NAME`; each function below that has no underscore is a NAME."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

import dtjob_trainer as dt

X = np.random.default_rng(0).random((64, 8), np.float32)
Y = np.arange(64) % 3


def _model(inputs: int = 8, rate: float = 0.1) -> Any:
    made = keras.Sequential([keras.Input((inputs,)), keras.layers.Dense(3)])
    made.compile(keras.optimizers.SGD(rate), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return made


def import_error() -> None:
    import no_such_module  # type: ignore[import-not-found]  # noqa: F401


def missing_file() -> None:
    Path("/data/no-such-file.npz").read_bytes()


def exit_3() -> None:
    print("no data for this day")
    sys.exit(3)


def exit_with_words() -> None:
    sys.exit("no data for this day")


def wrong_shapes() -> None:
    dt.fit(_model(inputs=5), X, Y, batch_size=16)


def wrong_targets() -> None:
    model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(3)])
    model.compile("sgd", "mse")
    dt.fit(model, X, np.zeros((64, 7), np.float32), batch_size=16)


def forgotten_compile() -> None:
    dt.fit(keras.Sequential([keras.Input((8,)), keras.layers.Dense(3)]), X, Y, batch_size=16)


def refused_later() -> None:
    model = _model()
    dt.fit(model, X, Y, batch_size=16)
    dt.fit(model, X, Y[:5], batch_size=16)


def out_of_memory() -> None:
    np.zeros((1 << 50,))


def nan_loss() -> None:
    """Its first step makes weights that are infinite; the second one's loss is no number."""
    tf.debugging.enable_check_numerics()
    dt.fit(_model(rate=1e38), X, Y, batch_size=16, epochs=3)


def typo_in_the_data() -> None:
    """After 20 batches, within a call of many steps."""

    def batches() -> Iterator[Any]:
        for number in range(100):
            yield X[:16], Y[:16] if number < 20 else {"loss": Y}["los"]

    of_x, of_y = (tf.TensorSpec((16, *one.shape[1:]), one.dtype) for one in (X, Y))
    data = tf.data.Dataset.from_generator(batches, output_signature=(of_x, of_y))
    _model().fit(data, epochs=3, verbose=0)


def save_into_a_missing_folder() -> None:
    model = _model()
    model.fit(X, Y, batch_size=16, verbose=0)
    model.save("no/such/model.keras")


def own_loop() -> None:
    """A loop by hand, whose database is away after three steps. Its client has an error with a name of TensorFlow's."""
    strategy = tf.distribute.get_strategy()
    with strategy.scope():
        level = tf.Variable(0.0)

    @tf.function  # type: ignore[untyped-decorator]
    def step(x: Any) -> None:
        def replica(x: Any) -> None:
            mean = tf.distribute.get_replica_context().all_reduce("mean", tf.reduce_mean(x))
            level.assign_add(mean)

        strategy.run(replica, (x,))

    for number in range(9):
        if number == 3:
            raise tf.errors.UnavailableError(None, None, "my database is away")
        step(X)


def own_step() -> None:
    """A loop that no strategy distributes."""
    model, optimizer = _model(), keras.optimizers.SGD(0.1)
    for _ in range(3):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(model(X, training=True) ** 2)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))


def own_step_of_tf_keras() -> None:
    import tf_keras

    model = tf_keras.Sequential([tf_keras.layers.Dense(3, input_shape=(8,))])
    optimizer = tf_keras.optimizers.SGD(0.1)
    for _ in range(3):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(model(X, training=True) ** 2)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))


if __name__ == "__main__":
    globals()[sys.argv[1]]()
