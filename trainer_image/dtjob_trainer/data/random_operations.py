"""Which operations of a graph draw random numbers from a stream that nobody can save."""

from __future__ import annotations

from typing import Any

RANDOM_OPERATIONS = frozenset({
    "AllCandidateSampler",
    "FixedUnigramCandidateSampler",
    "LearnedUnigramCandidateSampler",
    "LogUniformCandidateSampler",
    "Multinomial",
    "ParameterizedTruncatedNormal",
    "RandomCrop",
    "RandomGamma",
    "RandomPoissonV2",
    "RandomShuffle",
    "RandomStandardNormal",
    "RandomUniform",
    "RandomUniformInt",
    "SampleDistortedBoundingBox",
    "SampleDistortedBoundingBoxV2",
    "TruncatedNormal",
    "UniformCandidateSampler",
})  # fmt: skip
"""TensorFlow's operations that draw from a stream which nobody can save."""


def in_graph(graph: Any) -> set[str]:
    """The types of RANDOM_OPERATIONS in `graph` (a `tf.Graph`) and the functions that it calls."""
    return operations(graph) & RANDOM_OPERATIONS


def operations(graph: Any) -> set[str]:
    """The types of all operations in `graph` (a `tf.Graph`) and the functions that it calls."""
    definition = graph.as_graph_def()
    nodes = [*definition.node, *(node for function in definition.library.function for node in function.node_def)]
    return {node.op for node in nodes}
