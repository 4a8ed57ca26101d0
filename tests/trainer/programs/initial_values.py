"""Makes variables whose initial values are others in each task, and prints what they are after a step.

initial_values.py [fit|more]: in a step of its own; in `fit`; the same with a variable more in the worker.
"""

import sys

import keras
import numpy as np
import tensorflow as tf
from tensorflow.python.ops import collective_ops

import dtjob_trainer as dt
from dtjob_trainer.process import runtime

how, index = sys.argv[1], runtime.current().task.index + (not dt.is_chief())
sent = []
"""TensorFlow's own exchanges of initial values."""
for name in ("broadcast_send", "broadcast_recv"):
    own = getattr(collective_ops, name)
    setattr(collective_ops, name, lambda *args, own=own: (sent.append(None), own(*args))[1])

strategy = tf.distribute.get_strategy()
alike, apart = tf.Variable(1.0), tf.Variable([10.0 + index, 10.0])
made = []


@tf.function
def step():
    def replica():
        if not made:
            made.append(tf.Variable(20.0 + index))
        return alike + apart + made[0]

    return strategy.run(replica)


if how == "step":
    print("step", step().numpy().tolist(), apart.numpy().tolist(), made[0].numpy(), "sent", len(sent), flush=True)
    sys.exit()
if how == "more" and index:
    more = tf.Variable(0.0)
layers = [keras.Input((1,)), keras.layers.Dense(1, kernel_initializer=keras.initializers.Constant(5.0 + index))]
model = keras.Sequential(layers)
model.compile(keras.optimizers.SGD(0.0), "mse")
dt.fit(model, np.ones((4, 1)), np.ones((4, 1)), batch_size=4, verbose=0)
print("fit", [weight.tolist() for weight in model.get_weights()], apart.numpy().tolist(), "sent", len(sent), flush=True)
