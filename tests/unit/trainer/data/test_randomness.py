# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.data.randomness: what of a graph or pipeline a restart would not have again."""

from types import SimpleNamespace
from typing import Any

import pytest

from dtjob_trainer.data import randomness


def graph(*operations: str, called: tuple[str, ...] = ()) -> Any:
    """A stand-in for a `tf.Graph` with these operations, and more in a function that it calls."""
    nodes = [SimpleNamespace(op=each) for each in operations]
    function = SimpleNamespace(node_def=[SimpleNamespace(op=each) for each in called])
    definition = SimpleNamespace(node=nodes, library=SimpleNamespace(function=[function]))
    return SimpleNamespace(as_graph_def=lambda: definition)


class MapDataset:
    """A stand-in for a `tf.data.Dataset` that maps with `operations`."""

    _deterministic = "default"

    def __init__(self, *operations: str, source: Any = None, deterministic: bool | None = None) -> None:
        self._operations, self._source, self._option = operations, source, deterministic

    def _functions(self) -> list[Any]:
        return [SimpleNamespace(function=SimpleNamespace(graph=graph(*self._operations)))] if self._operations else []

    def _inputs(self) -> list[Any]:
        return [self._source] if self._source is not None else []

    def options(self) -> Any:
        return SimpleNamespace(deterministic=self._option)


class ParallelMapDataset(MapDataset):
    pass


class ShuffleDataset(MapDataset):
    pass


class LooseDataset(MapDataset):
    _deterministic = "false"


def test_operations_with_a_state_of_their_own_are_found_in_called_functions_too() -> None:
    found = randomness.operations(graph("MatMul", "RandomUniform", called=("RandomShuffle", "Add")))
    assert randomness.with_own_state(found) == {"RandomUniform", "RandomShuffle"}
    assert not randomness.with_own_state({"StatelessRandomUniformV2"})


@pytest.mark.parametrize(
    ("operation", "own", "given"),
    [
        ("ThreadUnsafeUnigramCandidateSampler", True, False),
        ("Multinomial", True, False),
        ("EagerPyFunc", True, False),
        ("PyFuncStateless", False, False),
        ("Add", False, False),
        ("a_function_of_the_program", False, False),
        ("PrintV2", False, False),
        ("Timestamp", False, False),
        ("CollectiveReduceV2", False, False),
        ("StatelessRandomGetAlg", False, False),
        ("VarHandleOp", False, False),
        ("ReadVariableOp", False, False),
        ("MutableHashTableV2", False, False),
        ("AssignAddVariableOp", False, True),
        ("ResourceScatterAdd", False, True),
        ("RngReadAndSkip", False, True),
        ("LookupTableInsertV2", False, True),
        ("CacheDatasetV2", False, False),
    ],
)
def test_tensorflow_tells_which_operations_have_a_state_and_where(operation: str, own: bool, given: bool) -> None:
    assert bool(randomness.with_own_state({operation})) is own
    assert bool(randomness.changing_resources({operation})) is given


@pytest.mark.parametrize(
    ("dataset", "from_begin", "repeats"),
    [
        (MapDataset("Mul"), False, True),
        (MapDataset("RandomUniform"), True, True),  # seeded, and in order from the first element on
        (MapDataset("RandomUniform"), False, False),  # the numbers before were not drawn
        (ParallelMapDataset("RandomUniform"), True, False),
        (ParallelMapDataset("Mul"), True, True),
        (MapDataset("RngReadAndSkip"), True, False),
        (ShuffleDataset(), True, False),
        (MapDataset("ShuffleDatasetV3"), True, False),  # inside a function, as of interleave
        (MapDataset("Mul", source=ShuffleDataset()), True, False),
        (LooseDataset(), True, False),
        (MapDataset(deterministic=False), True, False),
        (MapDataset("PyFunc"), True, False),  # Python code may keep a state
        (MapDataset("EagerPyFunc"), True, False),
        (MapDataset("PyFuncStateless"), True, True),  # the program says that it keeps none
    ],
)
def test_a_pipeline_repeats_only_what_a_new_process_would_draw_again(
    dataset: Any, from_begin: bool, repeats: bool
) -> None:
    assert (not randomness.unrepeatable(dataset, from_begin=from_begin)) is repeats


def test_a_part_with_deterministic_false_is_found_in_the_whole_pipeline_and_inside_functions() -> None:
    assert randomness.in_any_order(MapDataset(source=LooseDataset()))
    assert not randomness.in_any_order(MapDataset(source=MapDataset(deterministic=False)))
    loose = MapDataset("RangeDataset")
    node = SimpleNamespace(op="ParallelMapDatasetV2", attr={"deterministic": SimpleNamespace(s=b"false")})
    definition = SimpleNamespace(node=[], library=SimpleNamespace(function=[SimpleNamespace(node_def=[node])]))
    function = SimpleNamespace(graph=SimpleNamespace(as_graph_def=lambda: definition))
    loose._functions = lambda: [SimpleNamespace(function=function)]  # type: ignore[method-assign]
    assert randomness.in_any_order(loose)
    node.attr["deterministic"].s = b"default"
    assert not randomness.in_any_order(loose)


@pytest.mark.parametrize(
    ("operation", "draws", "python"),
    [("Mul", False, False), ("RandomUniform", True, False), ("RngReadAndSkip", True, False), ("PyFunc", False, True)],
)
def test_random_and_python_operations_are_found_in_all_parts_of_a_pipeline(
    operation: str, draws: bool, python: bool
) -> None:
    dataset = MapDataset("Mul", source=MapDataset(operation))
    assert (randomness.draws(dataset), randomness.calls_python(dataset)) == (draws, python)
    if python:  # of the program, unless it is said to be dtjob's
        assert "from_generator" in randomness.unrepeatable(dataset, from_begin=True)
        assert not randomness.unrepeatable(dataset, from_begin=True, python=False)
