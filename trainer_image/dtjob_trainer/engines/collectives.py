# SPDX-License-Identifier: Apache-2.0
"""What a traced step exchanges with other replicas."""

from typing import Any


def have_open_shapes(graph: Any) -> bool:
    """Whether anything that `graph` (a `tf.Graph`) exchanges may have another shape at each step.

    So have gradients of embeddings, whose rows depend on the batch, and rows that all replicas see. TensorFlow takes
    the first step's shape for that of all steps of one call, and breaks off at another one.
    """
    definition = graph.as_graph_def(add_shapes=True)
    nodes = [*definition.node, *(node for function in definition.library.function for node in function.node_def)]
    return any(_is_open(node) for node in nodes if node.op.startswith("Collective"))


def _is_open(node: Any) -> bool:
    shapes = node.attr["_output_shapes"].list.shape
    return not shapes or any(shape.unknown_rank or any(dim.size < 0 for dim in shape.dim) for shape in shapes)
