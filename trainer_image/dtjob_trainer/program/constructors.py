# SPDX-License-Identifier: Apache-2.0
"""The classes of strategies in `tf.distribute`: in a job's program they give the job's strategy.

A script that makes its own strategy so runs as it is. Only the public names are replaced. TensorFlow's own modules keep
their classes.
"""

import inspect
from collections.abc import Mapping
from functools import cache, partial
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
        self._say = cache(here.log)
        self._asked: set[str] = set()
        self._devices_chosen = False

    def of(self, name: str, original: type, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """The job's strategy, for a call of the class of that public `name`. Raises TypeError as the class would."""
        bound = inspect.signature(original).bind_partial(*args, **kwargs).arguments
        given = {argument: value for argument, value in bound.items() if value is not None}
        self._asked.add(name)
        if not self._task.is_evaluator:
            if (kind := name.removesuffix("Strategy")) != self._task.strategy:
                self._say(
                    f"{name}() returns the job's strategy, {self._task.strategy}; to train under {name}, set "
                    f"spec.strategy to {kind}"
                )
            else:
                self._take(name, original, given)
        if self._here.strategy.cluster_resolver is None:
            tensorflow.choose_resolver(self._here.strategy, _resolver_of_one(self._task))
        return self._here.strategy

    def was_asked_for(self, name: str, instance: Any) -> bool:
        """Whether `instance` is the job's strategy, and the program has made it by the class of that name."""
        return name in self._asked and instance is self._here.strategy

    def _take(self, name: str, original: type, given: Mapping[str, Any]) -> None:
        """Honour the arguments that the job leaves open; name the others with the field to set."""
        import tensorflow as tf

        fixed = [argument for argument in given if FIELDS.get(argument) in self._task.strategy_options]
        for argument in fixed:
            self._say(f"{name}: {argument} is left aside: spec.strategyOptions.{FIELDS[argument]} decides")
        taken = {argument: value for argument, value in given.items() if argument not in fixed}
        devices = {key: value for key, value in taken.items() if key in DEVICES}
        for key in [key for key, value in devices.items() if not _are_here(value)]:
            self._say(f"{name}: {key}={devices.pop(key)!r} is left aside, because this task has no such devices")
        if devices and not self._devices_chosen and not self._here.began:  # the first time that it asks for some
            self._devices_chosen = True
            tf.distribute.experimental_set_strategy(original(**devices))
            told = ", ".join(f"{key}={value!r}" for key, value in devices.items())
            self._here.log(f"{name}({told}): replicas in this task: {self._here.strategy.num_replicas_in_sync}")
        if "variable_partitioner" in taken:
            from dtjob_trainer.strategies import sharded_variables

            cut = sharded_variables.of_floats(taken["variable_partitioner"])
            tensorflow.choose_partitioner(self._here.strategy, cut)
        if "communication_options" in taken:
            tensorflow.choose_communication(self._here.strategy, taken["communication_options"])
        if "communication" in taken:
            options = tf.distribute.experimental.CommunicationOptions(implementation=taken["communication"])
            tensorflow.choose_communication(self._here.strategy, options, merged=True)


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

    named = [each for each in (devices if isinstance(devices, list | tuple) else [devices]) if isinstance(each, str)]
    specs = map(tf.DeviceSpec.from_string, named)
    return all((each.device_index or 0) < len(tf.config.list_logical_devices(each.device_type)) for each in specs)


def give_the_jobs(here: Runtime, task: Task) -> None:
    """Have the public classes of strategies give the ambient strategy of this process when they are called.

    `isinstance` holds for the class that was called, and for the class that the strategy is of.
    """
    jobs = JobsStrategy(here, task)
    for name, hook in tensorflow.CONSTRUCTORS.items():
        hooks.put(hook, partial(_giving, jobs, name))


def _giving(jobs: JobsStrategy, name: str, original: type) -> type:
    """A class like `original`, of that public `name`, whose constructor gives the job's strategy."""

    class Giving(type(original)):  # type: ignore[misc]
        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            return jobs.of(name, original, args, kwargs)

        def __instancecheck__(cls, instance: Any) -> bool:
            return isinstance(instance, original) or jobs.was_asked_for(name, instance)

        def __subclasscheck__(cls, subclass: type) -> bool:
            return issubclass(subclass, original)

    attributes = {"__doc__": original.__doc__, "__module__": original.__module__}
    given: type = Giving(original.__name__, (original,), attributes)
    return given
