# SPDX-License-Identifier: Apache-2.0
"""A script whose strategy has arguments: those that the job leaves open are used, the others are named."""

import tensorflow as tf

tf.distribute.MirroredStrategy(devices=["/gpu:0", "/gpu:1"])  # which are not here
ops = tf.distribute.ReductionToOneDevice()
strategy = tf.distribute.MirroredStrategy(devices=["/cpu:0"], cross_device_ops=ops)
assert strategy.num_replicas_in_sync == 1
assert strategy is tf.distribute.get_strategy()
assert tf.distribute.MirroredStrategy() is strategy
assert tf.compat.v1.distribute.MirroredStrategy() is strategy
assert not isinstance(strategy, tf.distribute.OneDeviceStrategy)
resolver = tf.distribute.MultiWorkerMirroredStrategy().cluster_resolver
assert (resolver.task_type, resolver.task_id, resolver.cluster_spec().num_tasks("worker")) == ("worker", 0, 1)
with strategy.scope(), strategy.scope():
    variable = tf.Variable(1.0)
assert strategy.extended.variable_created_in_scope(variable)


class Own(tf.distribute.MirroredStrategy):
    pass


assert issubclass(Own, tf.distribute.MirroredStrategy)
