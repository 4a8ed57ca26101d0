"""One step of training or evaluation under a synchronous strategy, each traced once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from dtjob_trainer.collective import Group
from dtjob_trainer.sources import Source
from dtjob_trainer.state import parts_of, sum_of


class Engine:
    """Runs steps of a built, compiled model on every replica of a synchronous strategy (or in one process)."""

    remote = False
    """Whether inputs must be whole batches, as they are computed on other machines."""

    def __init__(self, model: Any, group: Group, own_step: bool) -> None:
        self.model = model
        self.group = group
        self._own_step = own_step
        self._loss: Any = None
        self._functions: dict[tuple[str, int], Any] = {}

    def train(self, source: Source, inputs: Any, count: int, total: int) -> None:
        """Train one step on `inputs`, of which `count` rows are this task's share of `total` examples."""
        self._loss = self._function("train", source)(inputs, tf.constant(count), tf.constant(total))

    def evaluate(self, source: Source, inputs: Any, count: int, total: int) -> None:
        """Update loss and metrics with one batch of evaluation data, sharded as in `train`."""
        self._function("evaluate", source)(inputs, tf.constant(count), tf.constant(total))

    def wait(self) -> None:
        """Return when all steps so far are done."""

    def loss(self) -> float:
        """This task's part of the last step's loss; the sum over tasks is the mean over the global batch."""
        return float(self._loss)

    def reset_metrics(self) -> None:
        """Begin the metrics anew."""
        self.model.reset_metrics()

    def read_metrics(self) -> dict[str, float]:
        """Loss and metrics since the last reset, over all tasks. Collective."""
        return read_metrics(self.model, self.group)

    def _function(self, kind: str, source: Source) -> Any:
        key = (kind, id(source))
        if key not in self._functions:
            body = body_of(kind, self._own_step)

            def step(inputs: Any, count: Any, total: Any) -> Any:
                def replica() -> Any:
                    mine, examples = self._share_of_replica(inputs, count)
                    x, y = source.decode(*mine)
                    return body(self.model, self.group.replicas, x, y, examples, total, source.may_be_empty)

                losses = self.group.strategy.experimental_local_results(self.group.strategy.run(replica))
                return tf.add_n(list(losses))

            # One trace with an open batch dimension: graphs for other shapes differ in their last bits, and which of
            # them a restarted run traces first depends on the step at which it resumes.
            number = tf.TensorSpec([], tf.int32)
            signature = [source.input_spec(), number, number]
            self._functions[key] = tf.function(step, autograph=False, input_signature=signature)
        return self._functions[key]

    def _share_of_replica(self, inputs: Any, count: Any) -> tuple[Any, Any]:
        """This replica's rows of the task's `count`, at least one, and how many of them count."""
        if self.group.local == 1:
            return inputs, count
        context = tf.distribute.get_replica_context()
        replica = context.replica_id_in_sync_group - self.group.first_replica
        low = replica * count // self.group.local
        high = (replica + 1) * count // self.group.local
        begin = tf.minimum(low, tf.maximum(count, 1) - 1)
        end = tf.maximum(high, begin + 1)
        return keras.tree.map_structure(lambda part: part[begin:end], inputs), high - low


def train_replica(model: Any, replicas: int, x: Any, y: Any, examples: Any, total: Any, may_be_empty: bool) -> Any:
    """One replica's training step; its share (scalar) of the loss of the global batch.

    Keras scales a loss by 1/replicas; times `examples` · replicas / `total`, gradients sum up to what one device gets
    from the whole batch, however unevenly it is cut.
    """
    weight = tf.cast(examples, tf.float32) * replicas / tf.cast(total, tf.float32)
    with tf.GradientTape() as tape:
        y_pred = _call(model, x, training=True)
        loss = model._compute_loss(x=x, y=y, y_pred=y_pred, sample_weight=None, training=True)
        scaled = loss * tf.cast(weight, loss.dtype)
        to_minimize = model.optimizer.scale_loss(scaled)
    weights = model.trainable_weights
    model.optimizer.apply_gradients(zip(tape.gradient(to_minimize, weights), weights, strict=True))
    _update_metrics(model, x, y, y_pred, loss * replicas, examples, may_be_empty)
    return tf.cast(scaled, tf.float32)


def own_train_replica(model: Any, replicas: int, x: Any, y: Any, examples: Any, total: Any, may_be_empty: bool) -> Any:
    """One replica's step of a model with its own `train_step`; shares are equal, as Keras scales losses itself."""
    logs = model.train_step((x, y))
    return tf.cast(logs.get("loss", 0.0), tf.float32) / replicas


def body_of(kind: str, own_step: bool) -> Callable[..., Any]:
    """What a replica does in a step of `kind`, "train" or "evaluate"."""
    if kind == "evaluate":
        return evaluate_replica
    return own_train_replica if own_step else train_replica


def evaluate_replica(model: Any, replicas: int, x: Any, y: Any, examples: Any, total: Any, may_be_empty: bool) -> Any:
    """One replica's evaluation step: updates loss and metrics; returns its share of the loss as `train_replica`."""
    y_pred = _call(model, x, training=False)
    loss = model._compute_loss(x=x, y=y, y_pred=y_pred, sample_weight=None, training=False)
    _update_metrics(model, x, y, y_pred, loss * replicas, examples, may_be_empty)
    return tf.cast(loss, tf.float32) * tf.cast(examples, tf.float32) * replicas / tf.cast(total, tf.float32)


def read_metrics(model: Any, group: Group) -> dict[str, float]:
    """Loss and metrics out of every replica's state, in one collective; the same floats in every task."""
    variables = model.metrics_variables
    sums = [sum_of(parts_of(group.strategy, v)) for v in variables]
    total = group.sum(np.concatenate([np.ravel(s) for s in sums]))
    mapping, offset = [], 0
    for variable, value in zip(variables, sums, strict=True):
        merged = total[offset : offset + value.size].reshape(value.shape)
        offset += value.size
        if variable.aggregation != "sum":
            merged = merged / (len(parts_of(group.strategy, variable)) * group.tasks)
        mapping.append((variable, tf.constant(merged.astype(variable.dtype))))
    with keras.StatelessScope(state_mapping=mapping):
        results = model.get_metrics_result()
    return {name: float(value) for name, value in results.items()}


def build(model: Any, x: Any, y: Any) -> None:
    """Make every variable of model, metrics and optimizer, from shapes alone; x and y are one batch (or its spec).

    Variables that came to be while a step is traced would not be mirrored (and fail under Mirrored).
    """
    model._symbolic_build(data_batch=(x, y))


def _call(model: Any, x: Any, training: bool) -> Any:
    return model(x, training=training) if model._call_has_training_arg else model(x)


def _update_metrics(model: Any, x: Any, y: Any, y_pred: Any, loss: Any, examples: Any, may_be_empty: bool) -> None:
    def update() -> Any:
        model._loss_tracker.update_state(loss, sample_weight=examples)
        model.compute_metrics(x, y, y_pred, sample_weight=None)
        return tf.constant(0)

    if may_be_empty:  # a replica that stands in with one row of no weight must not count it
        tf.cond(examples > 0, update, lambda: tf.constant(0))
    else:
        update()
