# SPDX-License-Identifier: Apache-2.0
"""Random numbers that a restarted run would not have again: which operations draw them, in graphs and in pipelines.

TensorFlow is asked by the objects that are given, and by its registry of operations.
"""

from collections.abc import Iterator, Set
from typing import Any

from dtjob_trainer.frameworks import datasets, tensorflow

NO_STATE = frozenset({
    "AllToAll", "Assert", "Case", "CrossReplicaSum", "DatasetToSingleElement", "DeepCopy", "DeviceIndex",
    "DevicePlacementOp", "Empty", "GuaranteeConst", "If", "IsTensorFloat32Enabled", "LookupTableFind",
    "LookupTableFindV2", "LookupTableSizeV2", "PartitionedCall", "Print", "PrintV2", "ReadVariableOp", "ReduceDataset",
    "RemoteCall", "ResourceGather", "ResourceGatherNd", "StatefulPartitionedCall", "StatelessRandomGetAlg",
    "SyncDevice", "Timestamp", "VarHandleOp", "VarIsInitializedOp", "VariableShape", "While",
})  # fmt: skip
"""Operations that TensorFlow calls stateful, and that change nothing. Functions that they call are looked at, too."""
NO_STATE_OF = (
    "Check", "Collective", "Cudnn", "Debug", "Nccl", "Recv", "Restore", "Save", "Send", "Sleep", "TPU", "TensorArray",
    "Xla", "_",
)  # fmt: skip
"""How the names of families of such operations begin. They exchange, check or hold values within a step."""
PYTHON_OPERATIONS = frozenset({"EagerPyFunc", "PyFunc"})
"""Operations that call Python code. `PyFuncStateless` does too, but there the program says that it keeps no state."""
_INSTEAD = "give arrays, a keras.utils.PyDataset, or a data function that uses its DataContext"
_PYTHON = (
    "the Dataset calls Python code (from_generator, py_function or numpy_function), which may keep a state that no "
    f"checkpoint has; {_INSTEAD}"
)


def with_own_state(names: Set[str]) -> set[str]:
    """Those types of operations that have a state of their own, which nobody can save: random numbers, for example.

    TensorFlow says which operations are stateful. If one takes or gives a resource, the state is in that.
    """
    return {name for name in names - NO_STATE if "own" in _states_of(name)}


def changing_resources(names: Set[str]) -> set[str]:
    """Those types of operations that change a variable, a table or a generator that they are given."""
    return {name for name in names - NO_STATE if "given" in _states_of(name)}


def _states_of(name: str) -> str:
    """Where an operation of this type has a state: "own", "given" (in a resource), or nowhere that counts."""
    from tensorflow.core.framework import types_pb2

    known = tensorflow.definition_of(name)
    if known is None or not known.is_stateful or name.startswith(NO_STATE_OF):  # None: a function, which is looked at
        return ""
    taken, given = ({each.type for each in arguments} for arguments in (known.input_arg, known.output_arg))
    if types_pb2.DT_VARIANT in given:  # a Dataset
        return ""
    if types_pb2.DT_RESOURCE in taken:
        return "given"
    return "" if types_pb2.DT_RESOURCE in given else "own"


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
        if changing_resources(found):
            return "a function of the Dataset changes variables, which no checkpoint has; use tf.random.stateless_…"
        parallel = "Parallel" in name or any(each.startswith("Parallel") for each in found)
        if (own := with_own_state(found) - PYTHON_OPERATIONS) and (parallel or not from_begin):
            how = "in parallel, in any order" if parallel else "anew after a restart"
            names = ", ".join(sorted(own))
            return f"functions of the Dataset draw random numbers {how} ({names}); use tf.random.stateless_…"
    return _PYTHON if python and calls_python(dataset) else ""


def keeps_state(part: Any) -> str:
    """Why the functions of `part` of a pipeline give an element something else if they run for fewer elements. Empty:
    they do not."""
    found = operations_of(part)
    own = with_own_state(found)
    if own & PYTHON_OPERATIONS:
        return (
            "a function of map() calls Python code, which may keep a state; if it keeps none, say so by "
            "tf.numpy_function(…, stateful=False)"
        )
    if own:
        return f"a function of map() draws random numbers ({', '.join(sorted(own))}); use tf.random.stateless_…"
    changing = ", ".join(sorted(changing_resources(found)))
    return f"a function of map() may keep a state ({changing}); leave it out" if changing else ""


def draws(dataset: Any) -> bool:
    """Whether functions of `dataset` draw random numbers, or change variables."""
    found = set().union(*map(operations_of, pipeline(dataset)))
    return bool((with_own_state(found) - PYTHON_OPERATIONS) | changing_resources(found))


def calls_python(dataset: Any) -> bool:
    """Whether `dataset` calls Python code of which it is not said that it keeps no state."""
    return any(operations_of(part) & PYTHON_OPERATIONS for part in pipeline(dataset))


def in_any_order(dataset: Any) -> bool:
    """Whether a part of `dataset`, or of Datasets in its functions, was told `deterministic=False`, which no option of
    the whole overrides."""
    parts = list(pipeline(dataset))
    nodes = [node for part in parts for each in datasets.functions_of(part) for node in _nodes(each.graph)]
    return any(map(datasets.is_in_any_order, parts)) or any(
        "deterministic" in getattr(node, "attr", ()) and node.attr["deterministic"].s == b"false" for node in nodes
    )


def operations_of(part: Any) -> set[str]:
    """The types of all operations in the functions of a part of a pipeline."""
    return set().union(*(operations(function.graph) for function in datasets.functions_of(part)))


def pipeline(dataset: Any) -> Iterator[Any]:
    """`dataset` and all that it reads from."""
    yield dataset
    for part in datasets.inputs_of(dataset):
        yield from pipeline(part)
