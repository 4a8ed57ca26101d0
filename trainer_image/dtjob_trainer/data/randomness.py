"""Random numbers that a restarted run would not have again: which operations draw them, in graphs and in pipelines.

TensorFlow is asked by the objects that are given; it is not imported here.
"""

from __future__ import annotations

from collections.abc import Iterator
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
STATE_OPERATIONS = frozenset({
    "AssignAddVariableOp",
    "AssignSubVariableOp",
    "AssignVariableOp",
    "RngReadAndSkip",
    "RngSkip",
})  # fmt: skip
"""Operations that change variables, as a `tf.random.Generator` or a Keras layer has them: no checkpoint holds these."""


def in_graph(graph: Any) -> set[str]:
    """The types of RANDOM_OPERATIONS in `graph` (a `tf.Graph`) and the functions that it calls."""
    return operations(graph) & RANDOM_OPERATIONS


def operations(graph: Any) -> set[str]:
    """The types of all operations in `graph` (a `tf.Graph`) and the functions that it calls."""
    definition = graph.as_graph_def()
    nodes = [*definition.node, *(node for function in definition.library.function for node in function.node_def)]
    return {node.op for node in nodes}


def repeats(dataset: Any, *, from_begin: bool) -> bool:
    """Whether a restarted run sees the same elements of `dataset`, as far as its pipeline shows.

    - from_begin: whether it is read from its first element on, and what was seen before is skipped; else the user's
      function delivers the rest alone. Random operations give each iterator the same numbers from its begin on, as the
      program's seeds are set, but only in this order: functions that run in parallel draw in any.

    Not seen: what Python code in from_generator or py_function does.
    """
    if in_any_order(dataset) or dataset.options().deterministic is False:
        return False
    for part in _pipeline(dataset):
        found: set[str] = set()
        for function in part._functions():
            found |= operations(function.function.graph)
        name = type(part).__name__
        if "Shuffle" in name or any("Shuffle" in each and "Dataset" in each for each in found):
            return False
        if found & STATE_OPERATIONS:
            return False
        parallel = "Parallel" in name or any(each.startswith("Parallel") for each in found)
        if found & RANDOM_OPERATIONS and (parallel or not from_begin):
            return False
    return True


def in_any_order(dataset: Any) -> bool:
    """Whether a part of `dataset` was told `deterministic=False`, which no option of the whole overrides.

    Not seen: interleave(), which does not keep what it was told, and parts inside functions.
    """
    return any(getattr(part, "_deterministic", None) == "false" for part in _pipeline(dataset))


def _pipeline(dataset: Any) -> Iterator[Any]:
    """`dataset` and all that it reads from."""
    yield dataset
    for part in dataset._inputs():
        yield from _pipeline(part)
