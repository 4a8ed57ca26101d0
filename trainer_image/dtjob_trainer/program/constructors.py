# SPDX-License-Identifier: Apache-2.0
"""The classes of strategies in `tf.distribute`: in a job's program they give the job's strategy.

A script that makes its own strategy so runs as it is. Only the public names are replaced. TensorFlow's own modules keep
their classes.
"""

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from dtjob_trainer.contract.task import Task
from dtjob_trainer.frameworks import hooks, tensorflow
from dtjob_trainer.process.runtime import Runtime

DEVICES = ("devices", "compute_devices", "parameter_device", "device", "cross_device_ops")
"""Arguments that choose devices of one process, so that another strategy has to be made."""
FIELDS = {
    "device": "device",
    "cross_device_ops": "crossDeviceOps",
    "communication": "communication",
    "communication_options": "communication",
    "variable_partitioner": "partitioner",
}
"""Arguments to the field of `spec.strategyOptions` that says the same."""


class JobsStrategy:
    """The strategy that each constructor gives, and what the log has said of them."""

    def __init__(self, here: Runtime, task: Task) -> None:
        self._here, self._task = here, task
        self._said: set[str] = set()
        self._asked: set[str] = set()
        self._devices_chosen = False

    def of(self, name: str, original: type, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """The job's strategy, for a call of the class of that public `name`. Raises TypeError as the class would."""
        bound = inspect.signature(original).bind_partial(*args, **kwargs).arguments
        given = {argument: value for argument, value in bound.items() if value is not None}
        self._asked.add(name)
        if not self._task.is_evaluator:
            self._apply(name, original, given)
        if self._here.strategy.cluster_resolver is None:
            tensorflow.choose_resolver(self._here.strategy, _resolver_of_one(self._task))
        return self._here.strategy

    def _apply(self, name: str, original: type, given: Mapping[str, Any]) -> None:
        """Take the arguments `given` to the class, or say what differs from the job's strategy."""
        if (kind := name.removesuffix("Strategy")) != self._task.strategy:
            self._say(
                f"{name}() returns the job's strategy, {self._task.strategy}; to train under {name}, set spec.strategy "
                f"to {kind}"
            )
        else:
            self._take(name, original, given)

    def was_asked_for(self, name: str, instance: Any) -> bool:
        """Whether `instance` is the job's strategy, and the program has made it by the class of that name."""
        return name in self._asked and instance is self._here.strategy

    def _take(self, name: str, original: type, given: Mapping[str, Any]) -> None:
        """Honour the arguments that the job leaves open; name the others with the field to set."""
        fixed = [argument for argument in given if FIELDS.get(argument) in self._task.strategy_options]
        for argument in fixed:
            self._say(f"{name}: {argument} is left aside: spec.strategyOptions.{FIELDS[argument]} decides")
        devices = {key: value for key, value in given.items() if key in DEVICES and key not in fixed}
        for key in [key for key, value in devices.items() if not _are_here(value)]:
            self._say(f"{name}: {key}={devices.pop(key)!r} is left aside, because this task has no such devices")
        if devices:
            self._choose_devices(name, original, devices)
        if "variable_partitioner" in given and "variable_partitioner" not in fixed:
            from dtjob_trainer.strategies import sharded_variables

            cut = sharded_variables.of_floats(given["variable_partitioner"])
            tensorflow.choose_partitioner(self._here.strategy, cut)
        if "communication_options" in given and "communication_options" not in fixed:
            tensorflow.choose_communication(self._here.strategy, given["communication_options"])
        if "communication" in given and "communication" not in fixed:
            tensorflow.choose_communication(self._here.strategy, _options(given["communication"]), merged=True)

    def _choose_devices(self, name: str, original: type, devices: Mapping[str, Any]) -> None:
        """Make the strategy with these devices the ambient one, the first time that the program asks for some."""
        import tensorflow as tf

        if self._devices_chosen or self._here.began:
            return
        self._devices_chosen = True
        tf.distribute.experimental_set_strategy(original(**devices))
        told = ", ".join(f"{key}={value!r}" for key, value in devices.items())
        self._here.log(f"{name}({told}): replicas in this task: {self._here.strategy.num_replicas_in_sync}")

    def _say(self, message: str) -> None:
        if message not in self._said:
            self._said.add(message)
            self._here.log(message)


def _resolver_of_one(task: Task) -> Any:
    """The resolver of a task outside a cluster, for a program that asks a strategy of several tasks who it is."""
    import tensorflow as tf

    config = task.tf_config_of_one()
    resolvers = tf.distribute.cluster_resolver
    spec = tf.train.ClusterSpec(config["cluster"])
    return resolvers.SimpleClusterResolver(spec, task_type=config["task"]["type"], task_id=config["task"]["index"])


def _are_here(devices: Any) -> bool:
    """Whether this process has all `devices`: their names, one of them, or other things than names."""
    import tensorflow as tf

    for each in devices if isinstance(devices, list | tuple) else [devices]:
        if isinstance(each, str):
            device = tf.DeviceSpec.from_string(each)
            if (device.device_index or 0) >= len(tf.config.list_logical_devices(device.device_type)):
                return False
    return True


def _options(communication: Any) -> Any:
    import tensorflow as tf

    return tf.distribute.experimental.CommunicationOptions(implementation=communication)


def give_the_jobs(here: Runtime, task: Task) -> None:
    """Have the public classes of strategies give the ambient strategy of this process when they are called.

    `isinstance` holds for the class that was called, and for the class that the strategy is of.
    """
    jobs = JobsStrategy(here, task)
    for name, hook in tensorflow.CONSTRUCTORS.items():
        hooks.put(hook, partial(_giving, name, of=jobs.of, was_asked_for=jobs.was_asked_for))


def _giving(name: str, original: type, of: Callable[..., Any], was_asked_for: Callable[[str, Any], bool]) -> type:
    """A class like `original` whose constructor gives what `of` does."""

    class Giving(type(original)):  # type: ignore[misc]
        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            return of(name, original, args, kwargs)

        def __instancecheck__(cls, instance: Any) -> bool:
            return isinstance(instance, original) or was_asked_for(name, instance)

        def __subclasscheck__(cls, subclass: type) -> bool:
            return issubclass(subclass, original)

    given: type = Giving(
        original.__name__, (original,), {"__doc__": original.__doc__, "__module__": original.__module__}
    )
    return given
