# SPDX-License-Identifier: Apache-2.0
"""The name of a strategy → `tf.distribute.Strategy`."""

import contextlib
import os
import socket
import time
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from dtjob_trainer.contract.strategy import ALONE
from dtjob_trainer.contract.task import Task
from dtjob_trainer.errors import MissingDeviceError, StrategyError
from dtjob_trainer.strategies import sharded_variables, tpu_connection
from dtjob_trainer.strategies.reached_servers import wait_for_servers

CROSS_DEVICE_OPS = {
    "NCCL": "NcclAllReduce",
    "HierarchicalCopy": "HierarchicalCopyAllReduce",
    "ReductionToOneDevice": "ReductionToOneDevice",
}
"""TensorFlow's names for `strategyOptions.crossDeviceOps`."""
PATIENCE_SECONDS = 10.0
"""How long a task waits for the leader. TensorFlow itself then waits for an hour, and names the missing tasks."""
ASK_AGAIN_SECONDS = (0.02, 0.5)
"""The shortest and the longest pause between two attempts. Within these it is a quarter of the time waited so far:
a thousand workers must not flood the name server."""
CONNECT_SECONDS = 1.0
"""How long one attempt to connect may take. The next one looks the name up anew, as the leader may have moved."""


def configure_devices(options: Mapping[str, Any]) -> None:
    """Split the CPU into `logicalCPUs` devices and let GPU memory grow. Call before TensorFlow's first operation."""
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

    For strategies with several tasks TF_CONFIG must be set. Raises StrategyError for options that have no devices here.
    """
    return _MAKERS[ALONE.name if task.is_evaluator else task.strategy](task)


def _multi_worker_mirrored(task: Task) -> Any:
    name = task.strategy_options.get("communication", "Auto")
    # physical ones: to ask for logical ones starts TensorFlow, after which it lets no collectives be configured
    if name == "NCCL" and not tf.config.list_physical_devices("GPU"):
        raise StrategyError("strategyOptions.communication NCCL needs GPUs and this task sees none; use Auto or Ring")
    implementation = getattr(tf.distribute.experimental.CommunicationImplementation, name.upper())
    options = tf.distribute.experimental.CommunicationOptions(implementation=implementation)
    wait_for_leader(task)
    return tf.distribute.MultiWorkerMirroredStrategy(_resolver(task), communication_options=options)


def wait_for_leader(task: Task, patience: float = PATIENCE_SECONDS) -> bool:
    """Return once the leader of `task`'s group listens on TensorFlow's port; False if it does not within `patience`.

    The TensorFlow processes of a group meet at the leader, which does not wait. All are let go at the same moment. If a
    task asks before the leader listens, it is refused, and TensorFlow's gRPC asks again after a second. The whole group
    waits for that, as was seen at one restart of eleven on two busy cores. A connection that says nothing does
    TensorFlow's server no harm.
    """
    if task.is_chief:
        return True
    host, _, port = task.cluster["chief" if task.cluster.get("chief") else "worker"][0].rpartition(":")
    began = time.monotonic()
    while (waited := time.monotonic() - began) < patience:
        with contextlib.suppress(OSError):  # also a name that does not resolve yet
            socket.create_connection((host.strip("[]"), int(port)), min(CONNECT_SECONDS, patience - waited)).close()
            return True
        least, most = ASK_AGAIN_SECONDS
        time.sleep(min(most, max(least, waited / 4)))
    return False


def _resolver(task: Task) -> Any:
    """What tells of the cluster. It keeps this task's type and index, because a program may change TF_CONFIG later."""
    config = task.tf_config()
    assert config is not None
    place = config["task"]
    return tf.distribute.cluster_resolver.TFConfigClusterResolver(place["type"], place["index"])


def _parameter_server(task: Task) -> Any:
    sharded_variables.allow_in_keras()
    cut = sharded_variables.partitioner(task.strategy_options, servers=len(task.cluster["ps"]))
    strategy = tf.distribute.ParameterServerStrategy(_resolver(task), cut)
    check_replicas(strategy.num_replicas_in_sync)
    wait_for_servers(len(task.cluster["worker"]), len(task.cluster["ps"]))
    return strategy


def check_replicas(of_a_worker: int) -> None:
    """Raise StrategyError where workers of ParameterServer have several GPUs: each would train on the whole batch."""
    if of_a_worker > 1:
        raise StrategyError(
            f"a worker of ParameterServer trains on one GPU, and these have {of_a_worker}: give each one "
            "(nvidia.com/gpu: 1), and raise replicaSpecs.worker.replicas"
        )


_MAKERS: Mapping[str, Callable[[Task], Any]] = {
    "Default": lambda task: tf.distribute.get_strategy(),
    "OneDevice": lambda task: tf.distribute.OneDeviceStrategy(_device(task.strategy_options)),
    "Mirrored": lambda task: tf.distribute.MirroredStrategy(_devices(), _cross_device_ops(task.strategy_options)),
    "CentralStorage": lambda task: tf.distribute.experimental.CentralStorageStrategy(compute_devices=_devices()),
    "MultiWorkerMirrored": _multi_worker_mirrored,
    "ParameterServer": _parameter_server,
    "TPU": lambda task: tpu_connection.connect(task.strategy_options),
}


def _devices() -> list[str]:
    """GPUs where there are any, else the logical CPUs."""
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
    found = [f"{device.device_type}:{device.name.rpartition(':')[2]}" for device in tf.config.list_logical_devices()]
    if name not in found:
        raise StrategyError(f"strategyOptions.device {name!r} is not here; this task sees {', '.join(found)}")
    return f"/{name.lower()}"


def _cross_device_ops(options: Mapping[str, Any]) -> Any:
    name = options.get("crossDeviceOps")
    if name is None:
        return None
    if name == "NCCL" and not tf.config.list_logical_devices("GPU"):
        raise StrategyError(
            "strategyOptions.crossDeviceOps NCCL needs GPUs and this task sees none; "
            "use HierarchicalCopy or ReductionToOneDevice"
        )
    return getattr(tf.distribute, CROSS_DEVICE_OPS[name])()
