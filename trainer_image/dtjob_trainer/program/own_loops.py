"""Loops of a program's own that its strategy distributes in another way, or not at all.

- A `GradientTape` outside of `strategy.run` is distributed by nobody. Where the variables are copies of replicas,
  TensorFlow fails inside, so that the call says instead what to write.
- Under ParameterServer, TensorFlow runs steps on workers through a `ClusterCoordinator`. A loop without one, as under
  all other strategies, runs in the chief.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

from dtjob_trainer.contract.strategy import Traits
from dtjob_trainer.errors import ModelFitError
from dtjob_trainer.process.failure import OWN_STEPS
from dtjob_trainer.process.runtime import Runtime

IN_CHIEF = (
    "this loop runs in the chief alone, as ParameterServer gives workers the steps of ClusterCoordinator.schedule(…); "
    "train with Model.fit or dtjob_trainer.train(…), or set spec.strategy to MultiWorkerMirrored, to use all tasks"
)


def watch(here: Runtime, traits: Traits) -> None:
    """Refuse what nobody distributes, and let loops for other strategies run in the chief of ParameterServer."""
    if not traits.distributed:
        return
    warn = functools.cache(here.warn)
    if traits.asynchronous:
        _iterate_in_chief(here, warn)
    _watch_gradients(traits)
    _watch_updates(traits, warn)


def _watch_gradients(traits: Traits) -> None:
    import tensorflow as tf

    original = tf.GradientTape.gradient

    @tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
    @functools.wraps(original)
    def gradient(self: Any, target: Any, sources: Any, *args: Any, **kwargs: Any) -> Any:
        if tf.distribute.in_cross_replica_context() and _are_copies(tf.nest.flatten(sources)):
            raise ModelFitError(OWN_STEPS)
        return original(self, target, sources, *args, **kwargs)

    tf.GradientTape.gradient = gradient


def _watch_updates(traits: Traits, warn: Callable[[str], None]) -> None:
    """Have an optimizer outside of `strategy.run` update variables of which there are no copies."""
    import tensorflow as tf

    interim = tf.__internal__.distribute.interim
    merge = interim.maybe_merge_call

    @functools.wraps(merge)
    def update(function: Callable[..., Any], strategy: Any, *args: Any, **kwargs: Any) -> Any:
        if not tf.distribute.in_cross_replica_context():
            return merge(function, strategy, *args, **kwargs)
        if traits.asynchronous:
            warn(IN_CHIEF)
        return function(tf.distribute.get_strategy(), *args, **kwargs)

    interim.maybe_merge_call = update


def _are_copies(sources: Iterable[Any]) -> bool:
    """Whether one of them is a variable with a copy for each replica."""
    from tensorflow.python.distribute.values import DistributedVariable

    inner = (getattr(source, "_value", source) for source in sources)  # of a variable of Keras 3
    return any(isinstance(one, DistributedVariable) for one in inner)


def _iterate_in_chief(here: Runtime, warn: Callable[[str], None]) -> None:
    """Have data of `experimental_distribute_dataset` and its like be there in this process too.

    TensorFlow leaves it to `ClusterCoordinator.create_per_worker_dataset` to build such data, for the workers alone.
    """
    from tensorflow.python.distribute import input_lib

    extended = here.strategy.extended
    for name in ("_experimental_distribute_dataset", "_distribute_datasets_from_function"):
        setattr(extended, name, _building(getattr(extended, name)))
    for kind in (input_lib.DistributedDataset, input_lib.DistributedDatasetsFromFunction):
        kind.build = _building_again(kind.build)
        kind.__iter__ = _telling(kind.__iter__, warn)


def _building(distribute: Callable[..., Any]) -> Callable[..., Any]:
    """The method `distribute`, whose data is ready for this process."""

    @functools.wraps(distribute)
    def method(*args: Any, **kwargs: Any) -> Any:
        data = distribute(*args, **kwargs)
        if not data._built:
            data.build()
        return data

    return method


def _building_again(build: Callable[..., None]) -> Callable[..., None]:
    """The method `build`, which the coordinator may call of data that is ready for this process."""

    @functools.wraps(build)
    def method(self: Any, *args: Any, **kwargs: Any) -> None:
        self._built = False
        build(self, *args, **kwargs)

    return method


def _telling(iterate: Callable[[Any], Any], warn: Callable[[str], None]) -> Callable[[Any], Any]:
    """The method `iterate`, which says that this process alone trains. In a function it may be a worker's."""
    import tensorflow as tf

    @functools.wraps(iterate)
    def method(self: Any) -> Any:
        if not tf.inside_function():
            warn(IN_CHIEF)
        return iterate(self)

    return method
