# SPDX-License-Identifier: Apache-2.0
"""Variables of TensorFlow's strategies: what dtjob replaces in their classes, and how replicas meet to assign them."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from dtjob_trainer.frameworks.hooks import Hook, read

_VALUES = "tensorflow.python.distribute.values"

NUMBERS = {
    kind: Hook(
        targets=(f"{_VALUES}:DistributedVariable.__{kind}__",),
        does=f"`{kind}(variable)` works for a variable of several replicas as for any other.",
        gone=f"give {kind}() the number that a variable of several replicas is",
        adds=True,
    )
    for kind in ("float", "int")
}
COUNTED_ASSIGNED = Hook(
    targets=(f"{_VALUES}:SyncOnReadVariable.assign",),
    does="To reset a metric, the sum over replicas is not read.",
    gone="reset metrics without an exchange for each variable",
    lasts="call",
)
COUNTED_READ = Hook(
    targets=(f"{_VALUES}:SyncOnReadVariable._get_cross_replica",),
    does="The states of all metrics of tf_keras are summed in one exchange.",
    gone="read metrics in one exchange",
    lasts="call",
)


def of_one_device(variable: Any) -> Any:
    """The variable itself of one of CentralStorage; any other as it is."""
    central = import_module("tensorflow.python.distribute.ps_values").AggregatingVariable
    return variable.get() if isinstance(variable, central) else variable


def sharded() -> Any:
    """The class of variables that a partitioner has cut; without it `()`, of which nothing is an instance.

    ParameterServer does not start without it, and no other strategy has such variables.
    """
    import tensorflow as tf

    return getattr(tf.__internal__.distribute, "ShardedVariable", ())


def see_sharded() -> None:
    """Raise FrameworkError if TensorFlow has no class of variables that a partitioner has cut."""
    import tensorflow as tf

    read(tf.__internal__.distribute, "ShardedVariable", "train with parameter servers")


def is_cut(variable: Any) -> bool:
    """Whether a TensorFlow variable is a shard of a variable that a partitioner has cut."""
    return hasattr(variable, "_sharded_container")


def merge_call(function: Callable[..., Any], strategy: Any, *args: Any) -> Any:
    """Call `function` once for all replicas, or in each replica where the strategy needs no meeting of them."""
    import tensorflow as tf

    return tf.__internal__.distribute.interim.maybe_merge_call(function, strategy, *args)


def meets_to_assign() -> bool:
    """Whether replicas of the present strategy have to meet to assign a variable."""
    import tensorflow as tf

    return not tf.__internal__.distribute.strategy_supports_no_merge_call()
