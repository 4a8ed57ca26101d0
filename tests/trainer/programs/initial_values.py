# SPDX-License-Identifier: Apache-2.0
"""Makes variables whose initial values are others in each task, and prints what they are after a step.

initial_values.py WAY [more]: in a step of the program's own (step), in `fit`, or the same after a step that the chief
alone has taken (chief); `more`: the worker makes a variable more. `apart`: tasks do other things between calls of fit.
"""

import sys

import keras
import numpy as np
import tensorflow as tf
from tensorflow.python.ops import collective_ops

import dtjob_trainer as dt
from dtjob_trainer.errors import StateError

index = 0 if dt.is_chief() else 1
sent = []
"""TensorFlow's own exchanges of initial values."""
for name in ("broadcast_send", "broadcast_recv"):
    own = getattr(collective_ops, name)
    setattr(collective_ops, name, lambda *args, own=own: (sent.append(None), own(*args))[1])

strategy = tf.distribute.get_strategy()
alike, apart = tf.Variable(1.0), tf.Variable([10.0 + index, 10.0])
derived = tf.Variable([0.0, 0.0])
derived.assign(apart)
made = []
if "more" in sys.argv and index:
    more = tf.Variable(0.0)


@tf.function
def step():
    def replica():
        if not made:
            made.append(tf.Variable(20.0 + index))
        return alike + derived + made[0]

    return strategy.run(replica)


if "step" in sys.argv:
    print("step", step().numpy().tolist(), apart.numpy().tolist(), made[0].numpy(), "sent", len(sent), flush=True)
    sys.exit()
keras.utils.set_random_seed(index)
model = keras.Sequential([keras.layers.Dense(1)])  # whose variables are made as `fit` begins
model.compile(keras.optimizers.ScheduleFreeAdamW(0.1), "mse")  # which begins with a copy of the weights
if "chief" in sys.argv and dt.is_chief():
    strategy.run(lambda: alike + 1.0)
dt.fit(model, np.ones((4, 1)), np.ones((4, 1)), batch_size=4, verbose=0)
if "apart" in sys.argv:
    if index:
        more = tf.Variable(0.0)
    try:
        dt.fit(model, np.ones((4, 1)), np.ones((4, 1)), batch_size=4, verbose=0)
    except StateError as error:
        print("refused:", error, flush=True)
    for rows in (4, 4) if index == 0 else (0, 4):
        try:
            dt.fit(model, np.ones((rows, 1)), np.ones((rows, 1)), batch_size=4, verbose=0)
        except ValueError:  # as a search that tries the next values
            continue
weights = [*model.get_weights(), *(v.numpy() for v in model.optimizer.variables)]
sums = np.sum([np.sum(weight) for weight in weights], dtype=np.float64)
print("fit", sums, derived.numpy().tolist(), "sent", len(sent), flush=True)
