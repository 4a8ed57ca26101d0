# SPDX-License-Identifier: Apache-2.0
"""Every optimizer and schedule that the package has, and averages of weights, as one device has them."""

import inspect

from one_device_setup import (
    CLIPPED,
    LEGACY,
    batched,
    case,
    compiled,
    dense,
    keras,
    layers,
    optimizers,
    options,
    train,
    x,
    xv,
    y,
    yv,
)

WRAPPERS = ("Optimizer", "LossScaleOptimizer", "MultiOptimizer")
"""Those that train nothing by themselves."""
SCHEDULES = {
    "CosineDecay": {"initial_learning_rate": 0.01, "decay_steps": 6, "warmup_target": 0.1, "warmup_steps": 3},
    "CosineDecayRestarts": {"initial_learning_rate": 0.1, "first_decay_steps": 3},
    "ExponentialDecay": {"initial_learning_rate": 0.1, "decay_steps": 3, "decay_rate": 0.5, "staircase": True},
    "InverseTimeDecay": {"initial_learning_rate": 0.1, "decay_steps": 2, "decay_rate": 0.5},
    "PiecewiseConstantDecay": {"boundaries": [2, 5], "values": [0.1, 0.05, 0.01]},
    "PolynomialDecay": {"initial_learning_rate": 0.1, "decay_steps": 6},
}


def classes_of(module, base):
    return {name: value for name, value in vars(module).items() if inspect.isclass(value) and issubclass(value, base)}


def slots_of(optimizer):
    return [v.numpy() for v in optimizer.variables]


def built(optimizer, model):
    """`optimizer`, which Keras's own fit would build while it traces its first step if there is no strategy.

    What ScheduleFreeAdamW assigns its momentum then, the weights, would be lost: it would start from zero.
    """
    if options.reference and type(optimizer).__name__ == "ScheduleFreeAdamW":
        optimizer.build(model.trainable_variables)
    return optimizer


@case
def every_optimizer():
    found = {}
    for name, kind in classes_of(optimizers, optimizers.Optimizer).items():
        # tf_keras's Nadam counts in Python what it has traced: its numbers depend on how often that was
        if name not in WRAPPERS and not (LEGACY and name == "Nadam"):
            model = dense()
            optimizer = kind(learning_rate=0.02)
            found[name] = train(compiled(model, built(optimizer, model), "mse"), x, y, validation_data=(xv, yv))
            found[f"{name} slots"] = slots_of(optimizer)
    return found


@case
def every_schedule_and_weight_decay():
    found = {}
    kinds = classes_of(optimizers.schedules, optimizers.schedules.LearningRateSchedule)
    for name in sorted(kinds.keys() - {"LearningRateSchedule"}):
        optimizer = optimizers.SGD(kinds[name](**SCHEDULES[name]), momentum=0.5, weight_decay=0.05)
        optimizer.exclude_from_weight_decay(var_names=["bias"])
        found[name] = train(compiled(dense(), optimizer, "mse"), x, y)
    for limit in ({"clipnorm": 0.05}, CLIPPED, {"clipvalue": 0.01}):
        optimizer = optimizers.AdamW(0.02, weight_decay=0.1, **limit)
        found[str(limit)] = train(compiled(dense(), optimizer, "mse"), x, y)
    return found


def averaging(kind, every=None, **settings):
    return kind(0.1, use_ema=True, ema_momentum=0.8, ema_overwrite_frequency=every, **settings)


@case
def averages_of_every_kind():
    """Keras 3's alone."""
    sgd, adam = optimizers.SGD, optimizers.Adam
    several = optimizers.OptimizerMap(averaging(sgd, 2), {"second/.*": averaging(adam)})
    each = {
        "adam": averaging(adam, clipnorm=0.5),
        "overwriting": averaging(adam, 3, weight_decay=0.01),
        "scaled": optimizers.LossScaleOptimizer(averaging(sgd, 4, momentum=0.5), initial_scale=8.0),
        "several": optimizers.MultiOptimizer(several),
    }
    return averaged(each)


@case
def averages_with_accumulation():
    """Keras 3's alone."""
    return averaged(
        {
            "accumulated": averaging(optimizers.SGD, gradient_accumulation_steps=2),
            "overwriting": averaging(optimizers.SGD, 2, gradient_accumulation_steps=3, global_clipnorm=0.3),
        }
    )


def averaged(each):
    found = {}
    for name, optimizer in each.items():
        bounded = layers.Dense(4, "tanh", kernel_constraint=keras.constraints.MaxNorm(0.5))
        model = keras.Sequential([keras.Input((5,)), bounded, layers.Dense(1, name="second")])
        found[name] = train(compiled(model, optimizer, "mse"), x, y, validation_data=(xv, yv))
        found[f"{name} slots"] = slots_of(optimizer)
    return found


@case
def averages_in_validation():
    """Keras 3's alone."""
    found = {}
    for on_epoch in (False, True):
        for every in (None, 4):
            seen = []
            note = lambda epoch, logs: seen.append(model.get_weights())  # noqa: B023, E731
            callbacks = [
                keras.callbacks.SwapEMAWeights(swap_on_epoch=on_epoch),
                keras.callbacks.LambdaCallback(on_epoch_end=note),
            ]
            model = compiled(dense(), averaging(optimizers.Adam, every), "mse")
            name = f"{on_epoch} {every}"
            found[name] = train(model, x, y, validation_data=(xv, yv), callbacks=callbacks)
            found[f"{name} weights at epochs' ends"] = seen
    return found


@case
def stop_within_a_validation():
    """Keras 3's alone."""
    found = {}
    for hook in ("on_test_begin", "on_test_batch_end"):
        made = type("Stop", (keras.callbacks.Callback,), {hook: stopping})()
        model = compiled(dense(), "sgd", "mse", metrics=["mae"])
        data = batched(xv, yv, batch=7)
        found[hook] = train(model, x, y, validation_data=data, callbacks=[made])
    return found


def stopping(self, batch=None, logs=None):
    """At the begin, which comes without a number, or after the second batch."""
    self.model.stop_evaluating = batch in (None, 1)


assert LEGACY or SCHEDULES.keys() == classes_of(optimizers.schedules, object).keys() - {"LearningRateSchedule"}
