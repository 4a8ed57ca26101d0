# SPDX-License-Identifier: Apache-2.0
"""Strategy TPU on CPUs, as there is no TPU: the connection is replaced by another strategy, all else is the real path.

tpu_stand_in.py mirrored ENTRYPOINT …: two logical CPUs are the replicas. tpu_stand_in.py xla ENTRYPOINT …: one, whose
every step XLA compiles, which refuses shapes that depend on data, as a TPU does. Not shown by either: the TPU's own
ops, its memory, its connection.
"""

import sys

import tensorflow as tf

from dtjob_trainer.engines.on_tpu import TpuEngine
from dtjob_trainer.run import main
from dtjob_trainer.strategies import tpu_connection

kind, *arguments = sys.argv[1:]


def strategy_at(address: str) -> tf.distribute.Strategy:
    if kind == "mirrored":
        return tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])
    return tf.distribute.OneDeviceStrategy("/cpu:0")


on_replicas = TpuEngine._on_replicas


def on_replicas_compiled(self, replica, inputs, count, whole):
    print("compiled by XLA", flush=True)
    return on_replicas(self, tf.function(replica, jit_compile=True, autograph=False), inputs, count, whole)


tpu_connection._strategy_at = strategy_at
if kind == "xla":
    TpuEngine._on_replicas = on_replicas_compiled
main(arguments)
