# SPDX-License-Identifier: Apache-2.0
"""Random numbers that a restarted run would not have again: which operations draw them, in graphs and in pipelines.

TensorFlow is asked by the objects that are given; it is not imported here.
"""

import functools
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

NO_STATE = frozenset({
    "Assert",
    "Case",
    "If",
    "LookupTableFind",
    "LookupTableFindV2",
    "PartitionedCall",
    "ReadVariableOp",
    "StatefulPartitionedCall",
    "VarHandleOp",
    "While",
})  # fmt: skip
"""Operations that TensorFlow calls stateful, and that change nothing. Functions that they call are looked at, too."""
PYTHON_OPERATIONS = frozenset({"EagerPyFunc", "PyFunc"})
"""Operations that call Python code. `PyFuncStateless` does too, but there the program says that it keeps no state."""
_INSTEAD = "give arrays, a keras.utils.PyDataset, or a data function that uses its DataContext"
_PYTHON = (
    "the Dataset calls Python code (from_generator, py_function or numpy_function), which may keep a state that no "
    f"checkpoint has; {_INSTEAD}"
)


def in_graph(graph: Any) -> set[str]:
    """The types of RANDOM_OPERATIONS in `graph` (a `tf.Graph`) and the functions that it calls."""
    return operations(graph) & RANDOM_OPERATIONS


def operations(graph: Any) -> set[str]:
    """The types of all operations in `graph` (a `tf.Graph`) and the functions that it calls."""
    return {node.op for node in _nodes(graph)}


def _nodes(graph: Any) -> list[Any]:
    """All nodes in `graph` and the functions that it calls."""
    definition = graph.as_graph_def()
    return [*definition.node, *(node for function in definition.library.function for node in function.node_def)]


def unrepeatable(dataset: Any, *, from_begin: bool, python: bool = True) -> str:
    """Why a restarted run may see other elements of `dataset`, as far as its pipeline shows. Empty: it does not.

    - from_begin: whether it is read from its first element on, and what was seen before is skipped; else the user's
      function delivers the rest alone. Random operations give each iterator the same numbers from its begin on, as the
      program's seeds are set, but only in this order: functions that run in parallel draw in any.
    - python: whether Python code that it calls is the program's.
    """
    if in_any_order(dataset) or dataset.options().deterministic is False:
        return "a part of the Dataset has deterministic=False; leave that out"
    for part in pipeline(dataset):
        found, name = operations_of(part), type(part).__name__
        if "Shuffle" in name or any("Shuffle" in each and "Dataset" in each for each in found):
            return f"the Dataset uses shuffle(), of which a new process begins with the first order; {_INSTEAD}"
        if found & STATE_OPERATIONS:
            return "a function of the Dataset changes variables, which no checkpoint has; use tf.random.stateless_…"
        parallel = "Parallel" in name or any(each.startswith("Parallel") for each in found)
        if found & RANDOM_OPERATIONS and (parallel or not from_begin):
            how = "in parallel, in any order" if parallel else "anew after a restart"
            return f"functions of the Dataset draw random numbers {how}; use tf.random.stateless_…"
    return _PYTHON if python and calls_python(dataset) else ""


def keeps_state(part: Any) -> str:
    """Why the functions of `part` of a pipeline give an element something else if they run for fewer elements. Empty:
    they do not."""
    from tensorflow.python.framework import op_def_registry

    found = {name for name in operations_of(part) if name not in NO_STATE}
    known = {name: op_def_registry.get(name) for name in found}
    found = {name for name, operation in known.items() if operation is None or operation.is_stateful}
    if found & PYTHON_OPERATIONS:
        return (
            "a function of map() calls Python code, which may keep a state; if it keeps none, say so by "
            "tf.numpy_function(…, stateful=False)"
        )
    if found & RANDOM_OPERATIONS:
        return "a function of map() draws random numbers; use tf.random.stateless_…"
    return f"a function of map() may keep a state ({', '.join(sorted(found))}); leave it out" if found else ""


def draws(dataset: Any) -> bool:
    """Whether functions of `dataset` draw random numbers, or change variables."""
    return any(operations_of(part) & (RANDOM_OPERATIONS | STATE_OPERATIONS) for part in pipeline(dataset))


def calls_python(dataset: Any) -> bool:
    """Whether `dataset` calls Python code of which it is not said that it keeps no state."""
    return any(operations_of(part) & PYTHON_OPERATIONS for part in pipeline(dataset))


def in_any_order(dataset: Any) -> bool:
    """Whether a part of `dataset`, or of Datasets in its functions, was told `deterministic=False`, which no option of
    the whole overrides."""
    return any(
        getattr(part, "_deterministic", None) == "false"
        or any(_is_in_any_order(function.function.graph) for function in part._functions())
        for part in pipeline(dataset)
    )


def watch_interleave() -> None:
    """Have `Dataset.interleave` keep on its Datasets, as `map` does, whether it was told `deterministic=False`."""
    from tensorflow.python.data.ops import interleave_op

    kind = interleave_op._ParallelInterleaveDataset
    original = kind.__init__

    @functools.wraps(original)
    def keeping(self: Any, *args: Any, deterministic: bool | None = None, **kwargs: Any) -> None:
        original(self, *args, deterministic=deterministic, **kwargs)
        self._deterministic = "default" if deterministic is None else str(bool(deterministic)).lower()

    kind.__init__ = keeping


def _is_in_any_order(graph: Any) -> bool:
    return any(
        "deterministic" in getattr(node, "attr", ()) and node.attr["deterministic"].s == b"false"
        for node in _nodes(graph)
    )


def operations_of(part: Any) -> set[str]:
    """The types of all operations in the functions of a part of a pipeline."""
    return set().union(*(operations(function.function.graph) for function in part._functions()))


def pipeline(dataset: Any) -> Iterator[Any]:
    """`dataset` and all that it reads from."""
    yield dataset
    for part in dataset._inputs():
        yield from pipeline(part)
