# SPDX-License-Identifier: Apache-2.0
"""What stays in the host's memory where another device trains, which a second CPU device stands for here."""

import numpy as np
import tensorflow as tf

import dtjob_trainer as dt
from dtjob_trainer.data import sources
from dtjob_trainer.data.batches import Place, Wanted
from dtjob_trainer.models import kept_variables

x, y = np.zeros((1000, 8), np.float32), np.zeros(1000, np.int64)
source = sources.make(x, y, None, Wanted(batch_size=10), Place(0, 1, 1))


@tf.function
def step(rows):
    return dt.strategy().run(lambda mine: [part for part in source.decode(mine) if part is not None], (rows,))


graph = step.get_concrete_function(tf.TensorSpec([None], tf.int64)).graph
graphs = [graph.as_graph_def().node, *(one.node_def for one in graph.as_graph_def().library.function)]
gathers = {tf.DeviceSpec.from_string(node.device) for nodes in graphs for node in nodes if node.op == "GatherV2"}
print("rows are taken on", sorted(f"{device.device_type}:{device.device_index}" for device in gathers))

with dt.strategy().scope():
    weights = tf.Variable(tf.zeros(1000))
kept = kept_variables._read(weights)
print("weights are on", tf.DeviceSpec.from_string(weights.device).device_index)
weights.assign(tf.ones(1000))
print("kept on", tf.DeviceSpec.from_string(kept.device).device_index, "as", float(tf.reduce_sum(kept)), flush=True)
