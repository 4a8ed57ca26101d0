# SPDX-License-Identifier: Apache-2.0
"""The name of a strategy → `tf.distribute.Strategy`. TensorFlow is imported when a strategy is made."""

import os
from collections.abc import Callable, Mapping
from typing import Any

from dtjob_trainer.contract.strategy import ALONE
from dtjob_trainer.contract.task import Task
from dtjob_trainer.errors import MissingDeviceError, StrategyError
from dtjob_trainer.strategies import tpu_connection
from dtjob_trainer.strategies.leader import wait_for_leader

CROSS_DEVICE_OPS = {
    "NCCL": "NcclAllReduce",
    "HierarchicalCopy": "HierarchicalCopyAllReduce",
    "ReductionToOneDevice": "ReductionToOneDevice",
}
COMMUNICATION = {"Auto": "AUTO", "Ring": "RING", "NCCL": "NCCL"}


def configure_devices(options: Mapping[str, Any]) -> None:
    """Split the CPU into `logicalCPUs` devices and let GPU memory grow. Call before TensorFlow's first operation."""
    import tensorflow as tf

    count = options.get("logicalCPUs")
    if count:
        cpu = tf.config.list_physical_devices("CPU")[0]
        tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * int(count))
    for gpu in tf.config.list_physical_devices("GPU"):
        tf.config.experimental.set_memory_growth(gpu, True)


def see_gpus(given: int, log: Callable[..., None]) -> None:
    """See that TensorFlow finds the GPUs that this task was given; warn where it finds fewer (as of shared ones).

    Starts nothing of TensorFlow's. Raises StrategyError where it finds none, as training would go on without, slowly:
    MissingDeviceError where that may be the node's fault.
    """
    import tensorflow as tf

    if os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1"):  # the program's own wish
        return
    seen = len(tf.config.list_physical_devices("GPU")) if given else 0
    if given and not seen:
        of_image = f"this task was given {given} of nvidia.com/gpu, and the image's TensorFlow"
        if not tf.test.is_built_with_cuda():
            raise StrategyError(f"{of_image} is for CPUs alone: use one with tensorflow[and-cuda], or ask for no GPUs")
        raise MissingDeviceError(
            f"{of_image} does not find them: CUDA's libraries may be missing in it (tensorflow[and-cuda] brings them), "
            "or the node's driver is too old; TF_CPP_MIN_LOG_LEVEL=0 in program.env has TensorFlow say which"
        )
    if seen < given:
        log(f"this task was given {given} of nvidia.com/gpu, and TensorFlow sees {seen} GPUs", level="warning")


def create(task: Task) -> Any:
    """The `tf.distribute.Strategy` that `task` trains under; the default one for the evaluator.

    For strategies with several tasks TF_CONFIG must be set. Raises StrategyError for names and options that do not
    exist or have no devices here.
    """
    name = ALONE.name if task.is_evaluator else task.strategy
    if name not in _MAKERS:
        raise StrategyError(f"spec.strategy {name!r} is not one that this trainer knows")
    return _MAKERS[name](task)


def _default(task: Task) -> Any:
    import tensorflow as tf

    return tf.distribute.get_strategy()


def _one_device(task: Task) -> Any:
    import tensorflow as tf

    return tf.distribute.OneDeviceStrategy(_device(task.strategy_options))


def _mirrored(task: Task) -> Any:
    import tensorflow as tf

    return tf.distribute.MirroredStrategy(_devices(), cross_device_ops=_cross_device_ops(task.strategy_options))


def _central_storage(task: Task) -> Any:
    import tensorflow as tf

    return tf.distribute.experimental.CentralStorageStrategy(compute_devices=_devices())


def _multi_worker_mirrored(task: Task) -> Any:
    import tensorflow as tf

    name = task.strategy_options.get("communication", "Auto")
    if name not in COMMUNICATION:
        raise StrategyError(f"strategyOptions.communication {name!r} must be one of {', '.join(COMMUNICATION)}")
    # physical ones: to ask for logical ones starts TensorFlow, after which it lets no collectives be configured
    if name == "NCCL" and not tf.config.list_physical_devices("GPU"):
        raise StrategyError("strategyOptions.communication NCCL needs GPUs and this task sees none; use Auto or Ring")
    implementation = getattr(tf.distribute.experimental.CommunicationImplementation, COMMUNICATION[name])
    options = tf.distribute.experimental.CommunicationOptions(implementation=implementation)
    wait_for_leader(task)
    return tf.distribute.MultiWorkerMirroredStrategy(_resolver(task), communication_options=options)


def _resolver(task: Task) -> Any:
    """What tells of the cluster. It keeps this task's type and index, because a program may change TF_CONFIG later."""
    import tensorflow as tf

    config = task.tf_config()
    assert config is not None
    place = config["task"]
    return tf.distribute.cluster_resolver.TFConfigClusterResolver(place["type"], place["index"])


def _parameter_server(task: Task) -> Any:
    import tensorflow as tf

    from dtjob_trainer.strategies import sharded_variables, tables

    tables.look_up_in_place()
    tables.update_looked_up_rows()
    sharded_variables.allow_in_keras()
    cut = sharded_variables.partitioner(task.strategy_options, servers=len(task.cluster["ps"]))
    strategy = tf.distribute.ParameterServerStrategy(_resolver(task), cut)
    check_replicas(strategy.num_replicas_in_sync)
    return strategy


def check_replicas(of_a_worker: int) -> None:
    """Raise StrategyError where workers of ParameterServer have several GPUs: each would train on the whole batch."""
    if of_a_worker > 1:
        raise StrategyError(
            f"a worker of ParameterServer trains on one GPU, and these have {of_a_worker}: give each one "
            "(nvidia.com/gpu: 1), and raise replicaSpecs.worker.replicas"
        )


_MAKERS: Mapping[str, Callable[[Task], Any]] = {
    "Default": _default,
    "OneDevice": _one_device,
    "Mirrored": _mirrored,
    "CentralStorage": _central_storage,
    "MultiWorkerMirrored": _multi_worker_mirrored,
    "ParameterServer": _parameter_server,
    "TPU": lambda task: tpu_connection.connect(task.strategy_options),
}


def _devices() -> list[str]:
    """GPUs where there are any, else the logical CPUs."""
    import tensorflow as tf

    for kind in ("GPU", "CPU"):
        devices = tf.config.list_logical_devices(kind)
        if devices:
            return [f"/{kind.lower()}:{index}" for index in range(len(devices))]
    raise StrategyError("TensorFlow sees neither a GPU nor a CPU")


def _device(options: Mapping[str, Any]) -> str:
    """The one device: the one named, else the first of `_devices`."""
    devices = _devices()
    name = options.get("device")
    if name is None:
        return devices[0]
    import tensorflow as tf

    found = [f"{device.device_type}:{device.name.rpartition(':')[2]}" for device in tf.config.list_logical_devices()]
    if name not in found:
        raise StrategyError(f"strategyOptions.device {name!r} is not here; this task sees {', '.join(found)}")
    return f"/{name.lower()}"


def _cross_device_ops(options: Mapping[str, Any]) -> Any:
    import tensorflow as tf

    name = options.get("crossDeviceOps")
    if name is None:
        return None
    if name not in CROSS_DEVICE_OPS:
        raise StrategyError(f"strategyOptions.crossDeviceOps {name!r} must be one of {', '.join(CROSS_DEVICE_OPS)}")
    if name == "NCCL" and not tf.config.list_logical_devices("GPU"):
        raise StrategyError(
            "strategyOptions.crossDeviceOps NCCL needs GPUs and this task sees none; "
            "use HierarchicalCopy or ReductionToOneDevice"
        )
    return getattr(tf.distribute, CROSS_DEVICE_OPS[name])()
