# SPDX-License-Identifier: Apache-2.0
"""Keras 3's models of ragged and sparse tensors: built from specs that say so."""

from typing import Any

import keras
import tensorflow as tf

from dtjob_trainer.frameworks import keras3


def build(model: Any, *parts: Any) -> None:
    """Build model, metrics and losses where some of x, y and weights, given by their specs, are ragged or sparse.

    Keras's own way takes all of them for dense, and leaves alone what is built already.
    """
    if not any(isinstance(spec, (tf.RaggedTensorSpec, tf.SparseTensorSpec)) for spec in keras.tree.flatten(parts)):
        return
    x, y, sample_weight = keras.tree.map_structure(_symbol, parts)
    y_pred = keras3.output_spec(model, x, training=False)
    arguments = {"x": x, "y": y, "y_pred": y_pred, "sample_weight": sample_weight}
    metrics, loss = keras3.compiled_metrics(model), keras3.compiled_loss(model)
    if metrics is not None and not metrics.built:
        keras3.output_spec(model.compute_metrics, **arguments)
    if loss is not None and not loss.built:
        keras3.output_spec(keras3.loss_function(model), training=False, **arguments)


def update_metrics(model: Any, x: Any, y: Any, sample_weight: Any) -> None:
    """Have a built model's metrics updated once with what specs say, without any effect."""
    x, y, sample_weight = keras.tree.map_structure(_symbol, (x, y, sample_weight))
    y_pred = keras3.output_spec(model, x, training=False)
    keras3.output_spec(model.compute_metrics, x=x, y=y, y_pred=y_pred, sample_weight=sample_weight)


def _symbol(spec: Any) -> Any:
    """Keras's symbolic tensor of a `tf.TypeSpec`; what is one already, or None, as it is."""
    if spec is None or isinstance(spec, keras.KerasTensor):
        return spec
    dtype = spec.dtype.name
    if isinstance(spec, tf.RaggedTensorSpec):
        ranks = {"ragged_rank": spec.ragged_rank, "row_splits_dtype": spec.row_splits_dtype}
        return keras.KerasTensor(spec.shape, dtype, ragged=True, **ranks)
    return keras.KerasTensor(spec.shape, dtype, sparse=isinstance(spec, tf.SparseTensorSpec))
