# SPDX-License-Identifier: Apache-2.0
"""Makes MultiWorkerMirrored with NCCL where TensorFlow is said to see a GPU, which it then takes for none."""

import json
import os
import sys

import tensorflow as tf

from dtjob_trainer.contract.task import Task
from dtjob_trainer.strategies.create import configure_devices, create

address = f"127.0.0.1:{sys.argv[1]}"
os.environ["TF_CONFIG"] = json.dumps({"cluster": {"chief": [address]}, "task": {"type": "chief", "index": 0}})
task = Task("test", "default", "uid", "chief", 0, strategy="MultiWorkerMirrored", cluster={"chief": (address,)})
real, logical = tf.config.list_physical_devices, tf.config.list_logical_devices


def one_gpu(ask):
    """What `ask` answers of a machine with a GPU; it is asked all the same."""

    def answer(kind=None):
        found = ask(kind)
        return [tf.config.PhysicalDevice("/physical_device:GPU:0", "GPU")] if kind == "GPU" else found

    return answer


configure_devices({})
tf.config.list_physical_devices, tf.config.list_logical_devices = one_gpu(real), one_gpu(logical)
strategy = create(Task(**{**vars(task), "strategy_options": {"communication": "NCCL"}}))
print("made", strategy.extended._communication_options.implementation.name, flush=True)
os._exit(0)
