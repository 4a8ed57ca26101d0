# SPDX-License-Identifier: Apache-2.0
"""What dtjob replaces in TensorFlow, and TensorFlow's private names. `datasets.py` and `coordinator.py` have more."""

import contextlib
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from dtjob_trainer.frameworks.hooks import Hook, imported, in_training, read

_DISTRIBUTE = "tensorflow.python.distribute"
_COLLECTIVE = f"{_DISTRIBUTE}.collective_all_reduce_strategy:CollectiveAllReduceExtended"
_HOMES = tuple(
    f"{compat}distribute{part}" for compat in ("", "compat.v1.", "compat.v2.") for part in ("", ".experimental")
)
_STRATEGIES = ("CentralStorage", "Mirrored", "MultiWorkerMirrored", "OneDevice", "ParameterServer", "TPU")
_SETTERS = (
    "set_logical_device_configuration",
    "experimental.set_virtual_device_configuration",
    "set_visible_devices",
    "experimental.set_visible_devices",
    "experimental.set_memory_growth",
    "threading.set_intra_op_parallelism_threads",
    "threading.set_inter_op_parallelism_threads",
)
"""Calls of `tf.config` that TensorFlow allows only before it begins."""


CONSTRUCTORS = {
    f"{kind}Strategy": Hook(
        targets=tuple(f"tensorflow:{home}.{kind}Strategy" for home in _HOMES),
        does="The constructor returns the strategy of the job, which is set as the default one.",
        gone="give the strategy of the job",
        some=True,
        ends=True,
    )
    for kind in _STRATEGIES
}
CONFIG_SETTERS = {
    name: Hook(
        targets=(f"tensorflow:config.{name}",),
        does="It does nothing if TensorFlow has started, and the log names the field to set.",
        gone="let a script call it",
    )
    for name in _SETTERS
}
SERVER = Hook(
    targets=tuple(
        f"tensorflow:{home}.Server"
        for home in ("distribute", "compat.v2.distribute", "compat.v1.distribute", "compat.v1.train")
    ),
    does="If the job has no servers, none is started and `join()` returns.",
    gone="let a script train that starts a server",
    ends=True,
)
CLUSTER_COORDINATOR = Hook(
    targets=tuple(
        f"tensorflow:{home}.ClusterCoordinator"
        for home in ("distribute.coordinator", "distribute.experimental.coordinator")
    ),
    does="If the job has no servers, it raises an error that says what to call.",
    gone="refuse it",
    ends=True,
)
NEW_GRAPH = Hook(
    targets=tuple(f"tensorflow:compat.{home}.reset_default_graph" for home in ("v1", "v2.compat.v1", "v1.compat.v1")),
    does="The strategy of the job stays the default one in the new graph.",
    gone="keep the strategy after keras.backend.clear_session()",
    some=True,
    ends=True,
)
DEVICE_OPTIONS = Hook(
    targets=tuple(
        f"tensorflow:{name}.__init__"
        for name in ("saved_model.SaveOptions", "saved_model.LoadOptions", "train.CheckpointOptions")
    ),
    does='`experimental_io_device="/job:localhost"` becomes the device of this process.',
    gone="save to the device that a script names",
)
SAVER = Hook(
    targets=("tensorflow.python.checkpoint.functional_saver:MultiDeviceSaver.save",),
    does="A group's tasks write to directories of their own and rename the files.",
    gone="keep tasks apart that save to the same file",
)
SAVED_MODEL_WRITTEN = Hook(
    targets=("tensorflow.python.saved_model.save:save_and_return_nodes",),
    does="In a group, a task that is not the chief writes to a directory of its own, `.TASK-NAME`.",
    gone="keep tasks apart that save to the same directory",
)
SAVED_MODEL_READ = Hook(
    targets=("tensorflow.python.saved_model.load:load_partial",),
    does="In a group, a task that is not the chief reads what it has written from its own directory.",
    gone="keep tasks apart that save to the same directory",
)
LOAD = Hook(
    targets=("tensorflow:saved_model.load", "tensorflow:compat.v2.saved_model.load"),
    does="A model that is loaded outside of `strategy.scope()` belongs to no strategy.",
    gone="let a script call a model that it has loaded",
)
SCOPE = Hook(
    targets=(f"{_DISTRIBUTE}.distribute_lib:Strategy.scope",),
    does="It notes whether the script is within a scope of its own.",
    gone="see where a script loads a model",
)
RESTORED_FUNCTION = Hook(
    targets=("tensorflow.python.saved_model.load:_WrapperFunction._call_flat",),
    does="Outside of replicas, a function of a loaded model reads the variables of this process.",
    gone="call a loaded model outside of replicas",
)
REDUCE = Hook(
    targets=(f"{_DISTRIBUTE}.distribute_lib:StrategyExtendedV2._reduce",),
    does="The sum of a plain number over several replicas is that number times the replicas.",
    gone="reduce a plain number",
)
OWN_GRADIENTS = Hook(
    targets=("tensorflow:GradientTape.gradient",),
    does="Its first call tells the operator that the program trains by itself. After it, the method is TensorFlow's.",
    gone="see that a program trains by itself",
)
CHIEFS_DATA = Hook(
    targets=tuple(
        f"{_DISTRIBUTE}.parameter_server_strategy_v2:ParameterServerStrategyV2Extended.{name}"
        for name in ("_experimental_distribute_dataset", "_distribute_datasets_from_function")
    ),
    does="Under ParameterServer the data is built for the chief too, so that a loop of the script runs there.",
    gone="run a loop of the script in the chief",
)
CHIEFS_DATA_BUILT = Hook(
    targets=tuple(
        f"{_DISTRIBUTE}.input_lib:{name}.build" for name in ("DistributedDataset", "DistributedDatasetsFromFunction")
    ),
    does="A coordinator may build data again that was built for the chief.",
    gone="run a loop of the script in the chief",
)
CHIEFS_DATA_READ = Hook(
    targets=tuple(
        f"{_DISTRIBUTE}.input_lib:{name}.__iter__" for name in ("DistributedDataset", "DistributedDatasetsFromFunction")
    ),
    does="The log says that the chief trains alone.",
    gone="say that a loop runs in the chief alone",
)
VARIABLE_MADE = Hook(
    targets=(f"{_COLLECTIVE}._create_variable",),
    does="In a group, it notes a variable and its initial value. All tasks compare them in one exchange.",
    gone="make variables without an exchange for each",
)
INITIAL_VALUE = Hook(
    targets=(f"{_COLLECTIVE}._get_variable_creator_initial_value",),
    does="In a group, each task takes its own initial value until the comparison.",
    gone="make variables without an exchange for each",
)
RUN = Hook(
    targets=(f"{_DISTRIBUTE}.distribute_lib:Strategy.run",),
    does="In a group, initial values are compared before a step of the program.",
    gone="compare initial values before a step",
    ends=True,
)
UPDATE_OF_WHOLES = Hook(
    targets=(f"{_DISTRIBUTE}.parameter_server_strategy_v2:ParameterServerStrategyV2Extended._update",),
    does="It updates a variable that is cut into shards as a whole.",
    gone="update variables that a partitioner cuts",
    ends=True,
)
AVERAGES = in_training(
    "tensorflow.python.ops.nn_impl_distribute:distribute_lib",
    does="`tf.nn.compute_average_loss` in a replica's step divides as on one device.",
    gone="compute losses as on one device",
)
SHARDS_AS_ARRAY = Hook(
    targets=(f"{_DISTRIBUTE}.sharded_variable:ShardedVariable.__array__",),
    does="A variable in shards becomes one NumPy array.",
    gone="read variables that a partitioner cuts",
    adds=True,
    ends=True,
)

is_deterministic = imported("tensorflow.python.framework.config:is_op_determinism_enabled")
"""Whether operations were told to be deterministic."""
definition_of = imported("tensorflow.python.framework.op_def_registry:get")
"""The OpDef of a type of operations; None for a function."""


def choose_resolver(strategy: Any, resolver: Any) -> None:
    """Have `strategy`, which has no resolver of a cluster, give that one."""
    strategy.extended._cluster_resolver = resolver


def choose_partitioner(strategy: Any, partitioner: Any) -> None:
    """Have a strategy of parameter servers cut variables by `partitioner` from now on."""
    read(strategy.extended, "_variable_partitioner", "take the variable_partitioner of a script")
    strategy.extended._variable_partitioner = partitioner


def choose_communication(strategy: Any, options: Any, *, merged: bool = False) -> None:
    """Have a collective `strategy` use these `CommunicationOptions`; `merged`: where they say something."""
    before = read(strategy.extended, "_communication_options", "take the communication options of a script")
    strategy.extended._communication_options = before.merge(options) if merged else options


def build_data(data: Any) -> None:
    """Build distributed data of ParameterServer for this process, unless that was done."""
    if not read(data, "_built", "run a loop of the script in the chief"):
        data.build()


def build_data_again(data: Any) -> None:
    """Have the next `build` of distributed data build it."""
    data._built = False


def replicas_of(extended: Any) -> int:
    """How many replicas a strategy has, asked of its `extended`."""
    return int(extended._num_replicas_in_sync)


def handle_here(variable: Any) -> Any:
    """The handle of this process's part of a distributed variable; any other tensor as it is."""
    utils = import_module(f"{_DISTRIBUTE}.distribute_utils")
    return variable._primary.handle if utils.is_distributed_variable(variable) else variable


def tensor_of(array: Any) -> Any:
    """A tensor in the host's memory that shares the memory of a NumPy `array`, if TensorFlow can."""
    import tensorflow as tf

    context = import_module("tensorflow.python.eager.context").context()
    context.ensure_initialized()
    kind = tf.as_dtype(array.dtype).as_datatype_enum
    return import_module("tensorflow.python.framework.ops").EagerTensor(array, context.device_name, kind)


@contextlib.contextmanager
def graphs_as_traced() -> Iterator[None]:
    """While this lasts, this thread runs graphs as they were traced: rewritten, `x / 3` becomes `x * (1 / 3)`."""
    module = import_module("tensorflow.python.eager.context")
    here = module.context()
    config = here.config
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    before = here.function_call_options
    here.function_call_options = module.FunctionCallOptions(config_proto=config)
    try:
        yield
    finally:
        here.function_call_options = before


def is_trackable(value: Any) -> bool:
    """Whether TensorFlow tracks the variables of `value`: a module, a layer of tf_keras or a `tf.random.Generator`."""
    import tensorflow as tf

    return isinstance(value, tf.__internal__.tracking.AutoTrackable)


def is_eager(value: Any) -> bool:
    """Whether `value` is a tensor that has its value."""
    import tensorflow as tf

    return isinstance(value, tf.__internal__.EagerTensor)
