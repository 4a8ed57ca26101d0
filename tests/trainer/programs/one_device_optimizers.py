# SPDX-License-Identifier: Apache-2.0
"""Optimizers, as one device has them."""

import numpy as np
from one_device_setup import (
    CLIPPED,
    EVERY,
    LEGACY,
    N,
    adam,
    case,
    compiled,
    dense,
    keras,
    layers,
    optimizers,
    train,
    weights,
    x,
    xv,
    y,
    yv,
)


@case
def clipping():
    found = {}
    for name, limit in (("clipnorm", 0.05), ("global_clipnorm", 0.05), ("clipvalue", 0.01)):
        model = compiled(dense(), optimizers.SGD(0.1, momentum=0.9, **{name: limit}), "mse")
        found[name] = train(model, x, y, epochs=2)
    return found


@case
def accumulation():
    schedule = optimizers.schedules.ExponentialDecay(0.05, 5, 0.8)
    every = {} if LEGACY else {"gradient_accumulation_steps": 3}  # which tf_keras lacks
    optimizer = optimizers.AdamW(schedule, **every, global_clipnorm=0.3, weight_decay=0.01)
    return train(compiled(dense(), optimizer, "mse"), x, y, sample_weight=weights)


@case
def accumulation_of_sparse_gradients():
    words = random_words()
    model = keras.Sequential([keras.Input((4,)), layers.Embedding(11, 3), layers.Flatten(), layers.Dense(1)])
    every = {} if LEGACY else {"gradient_accumulation_steps": 2}
    compiled(model, optimizers.SGD(0.1, **every, clipnorm=0.5), "mse")
    first = train(model, words, y)
    model = keras.Sequential([keras.Input((4,)), layers.Embedding(11, 3), layers.Flatten(), layers.Dense(1)])
    # the last of these steps in one call has a batch of another size
    together = compiled(model, adam(), "mse", steps_per_execution=4)
    return {"accumulated": first, "at once": train(together, words, y)}


@case
def moving_averages():
    found = {}
    for every in (None, 4):  # None: the averages become the weights at the end of the run
        optimizer = optimizers.SGD(0.1, use_ema=True, ema_momentum=0.8, ema_overwrite_frequency=every)
        found[every] = train(compiled(dense(), optimizer, "mse"), x, y, validation_data=(xv, yv))
    return found


def random_words():
    return np.random.default_rng(3).integers(0, 11, (N, 4))


@case
def loss_scale():
    return scaled(None)


@case
def loss_scale_and_accumulation():
    """Keras 3's alone."""
    return scaled(2)


def scaled(every):
    """Float32, so that it can be compared; one example makes the gradients of its replica alone overflow."""
    huge = x.copy()
    huge[25] = 1e18
    home, settings = (keras.mixed_precision, {}) if LEGACY else (optimizers, {"gradient_accumulation_steps": every})
    inner = optimizers.SGD(0.01, global_clipnorm=1.0, **settings)
    optimizer = home.LossScaleOptimizer(inner, initial_scale=2.0**12, dynamic_growth_steps=2)
    plain = keras.Sequential([keras.Input((5,)), layers.Dense(1)])
    model = compiled(plain, optimizer, "mse", **({} if LEGACY else {"auto_scale_loss": False}))
    weights = train(model, huge, y, epochs=4)["weights"]
    return {"weights": weights, "optimizer": [v.numpy() for v in optimizer.variables]}


@case
def several_optimizers_in_one():
    """Keras 3's alone; Adam would hide a gradient that is too large."""
    found = {}
    for name, limits in (("plain", {}), ("clipped", {"clipnorm": 0.05}), ("accumulated", {**CLIPPED, **EVERY})):
        inner = {"second/.*": optimizers.SGD(0.1, momentum=0.5, **limits)}
        optimizer = optimizers.MultiOptimizer(optimizers.OptimizerMap(optimizers.SGD(0.05, **limits), inner))
        stack = [keras.Input((5,)), layers.Dense(4, "tanh"), layers.Dense(1, name="second")]
        found[name] = train(compiled(keras.Sequential(stack), optimizer, "mse"), x, y)
        found[f"{name} slots"] = [v.numpy() for v in optimizer.variables]
    return found


def set_policy(name):
    (keras.mixed_precision.set_global_policy if LEGACY else keras.config.set_dtype_policy)(name)


@case
def mixed_precision():
    """Eight bits of mantissa: equal to a few parts in a hundred only."""
    found = {}
    for policy in ("mixed_bfloat16", "mixed_float16"):
        set_policy(policy)
        try:
            optimizer = optimizers.SGD(0.05)
            if policy == "mixed_float16":  # at the default scale it would depend on the cut which steps overflow
                home = keras.mixed_precision if LEGACY else optimizers
                optimizer = home.LossScaleOptimizer(optimizer, initial_scale=64.0)
            model = compiled(dense(dtype="float32"), optimizer, "mse", metrics=["mae"])
            found[policy] = train(model, x, y, epochs=4, validation_data=(xv, yv))["history"]
        finally:
            set_policy("float32")
    return found


@case
def float8():
    """Keras 3's alone: scales and maxima, which are overwritten with their gradients."""
    stack = [keras.Input((5,)), layers.Dense(4, "tanh", dtype="float8_from_float32"), layers.Dense(1)]
    optimizer = optimizers.LossScaleOptimizer(adam(), initial_scale=8.0)
    return train(compiled(keras.Sequential(stack), optimizer, "mse"), 9.0 * x, y)
