# SPDX-License-Identifier: Apache-2.0
"""The part of a traced step between known tensors and a loss, as a function that can be called with other rows."""

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import tensorflow as tf
from tensorflow.python.framework import ops

from dtjob_trainer.models.by_rows.blocks import key_of as key_of

SourceKind = Literal["rows", "mean", "free"]

MOST_OPERATIONS = 3000
"""A larger part is not cut out."""
_UNUSABLE = (tf.string, tf.resource, tf.variant)
_CUSTOM_GRADIENT = "_gradient_op_type"
_PLACED = ("_class", "_tpu_replicate")
"""Attributes that tie an operation to its graph."""


@dataclass(frozen=True)
class Source:
    """A tensor that a part of a step begins at."""

    tensor: Any
    kind: SourceKind
    """Whether its first dimension is the batch's rows, or it is a mean over them, or has nothing to do with them."""
    blocks: int = 1
    """How often it has the batch's rows (`blocks_of`)."""


@dataclass(frozen=True)
class Edge:
    """The tensors at which parts of a step begin, by `key_of`."""

    rows: Collection[Any] = ()
    means: Collection[Any] = ()
    parts: Collection[Any] = ()
    """Components of ragged and sparse tensors, which have no rows to join."""
    blocks: Mapping[Any, int] = field(default_factory=dict)
    """How many blocks those of `rows` have that have not one."""


class UnknownPartError(Exception):
    """A part of a step cannot be cut out."""


class Slice:
    """The operations between `sources` and `target`. It can be called wherever operations can be made."""

    def __init__(self, target: Any, operations: list[Any], sources: list[Source]) -> None:
        self.target, self.operations, self.sources = target, operations, sources

    def __call__(self, *tensors: Any) -> Any:
        """`target` of other tensors in place of the sources."""
        graph = ops.get_default_graph()
        made = {key_of(source.tensor): tensor for source, tensor in zip(self.sources, tensors, strict=True)}
        for operation in self.operations:
            inputs = [made[key_of(each)] for each in operation.inputs]
            _take_functions(operation, graph)
            copy = graph._create_op_internal(
                operation.type,
                inputs,
                [output.dtype for output in operation.outputs],
                attrs={name: value for name, value in operation.node_def.attr.items() if name not in _PLACED},
                op_def=operation.op_def,
            )
            made |= {key_of(old): new for old, new in zip(operation.outputs, copy.outputs, strict=True)}
        return tf.identity(made[key_of(self.target)])

    @property
    def signature(self) -> list[tf.TensorSpec]:
        """The specs of the sources."""
        return [tf.TensorSpec(source.tensor.shape, source.tensor.dtype) for source in self.sources]

    def function(self) -> Any:
        """The slice as a `tf.function`."""
        return tf.function(self, input_signature=self.signature, autograph=False)

    @property
    def digest(self) -> str:
        """The same for slices that do the same with sources of the same kinds, shapes and types."""
        known = {key_of(source.tensor): f"source {place}" for place, source in enumerate(self.sources)}
        sources = ((source, source.tensor) for source in self.sources)
        text = [f"{source.kind} {source.blocks} {tensor.shape} {tensor.dtype}" for source, tensor in sources]
        for place, operation in enumerate(self.operations):
            attributes = operation.node_def.attr
            parts = sorted((name, attributes[name].SerializeToString(deterministic=True)) for name in attributes)
            text.append(f"{operation.type} {[known[key_of(each)] for each in operation.inputs]} {parts}")
            known |= {key_of(output): f"{place}:{number}" for number, output in enumerate(operation.outputs)}
        text.append(known[key_of(self.target)])
        return hashlib.sha256("\n".join(text).encode()).hexdigest()

    @property
    def differentiable(self) -> bool:
        """Whether its gradient can be had at other tensors: not where the program has written one itself."""
        return not any(_CUSTOM_GRADIENT in operation.node_def.attr for operation in self.operations)

    @property
    def follows_gradients(self) -> bool:
        """Whether it is made of gradients."""
        return any("gradient_tape" in operation.name for operation in self.operations)

    @property
    def constants(self) -> list[Any]:
        """The numbers and arrays of numbers that the program has written into it and the functions that it calls."""
        made = (operation for operation in self.all_operations() if operation.type == "Const")
        found = [tf.get_static_value(operation.outputs[0]) for operation in made if _is_number(operation.outputs[0])]
        return [value.real for value in found if value is not None]

    def all_operations(self) -> Iterator[Any]:
        """Its operations, and those of the functions that they call."""
        queue, seen = [*self.operations], set()
        for operation in queue:  # it grows
            yield operation
            for function in _functions_of(operation):
                if function.name not in seen:
                    seen.add(function.name)
                    queue += function.graph.get_operations()


def cut_out(target: Any, edge: Edge) -> Slice:
    """The slice from `edge`, variables, random numbers and arguments of the graph to `target`.

    Raises UnknownPartError where there is none.
    """
    sources: dict[Any, Source] = {}
    operations: dict[int, Any] = {}
    stack: list[tuple[Any, bool]] = [(target, False)]
    while stack:
        tensor, ready = stack.pop()
        key, operation = key_of(tensor), tensor.op
        if ready:
            operations.setdefault(id(operation), operation)
        elif key not in sources and id(operation) not in operations:
            source = _source_of(tensor, key, edge)
            if source is not None:
                sources[key] = source
                continue
            stack.append((tensor, True))
            stack += [(each, False) for each in reversed(operation.inputs)]
        if len(operations) > MOST_OPERATIONS:
            raise UnknownPartError("it is too large")
    return Slice(target, [*operations.values()], [*sources.values()])


def _source_of(tensor: Any, key: Any, edge: Edge) -> Source | None:
    """The source that `tensor` is, None where it is computed of others."""
    if key in edge.means:
        return Source(tensor, "mean")
    if key in edge.parts:
        raise UnknownPartError("it depends on a ragged or sparse tensor")
    operation = tensor.op
    begins = (
        key in edge.rows
        or operation.type.startswith(("Placeholder", "Random", "StatelessRandom", "StatelessTruncated", "Truncated"))
        or any(each.dtype in (tf.resource, tf.variant) for each in operation.inputs)
    )
    if not begins:
        if operation.type.startswith(("Collective", "Nccl")):
            raise UnknownPartError("it depends on what other replicas compute")
        return None
    if tensor.dtype in _UNUSABLE or tensor.shape.rank is None:
        raise UnknownPartError(f"it depends on a tensor of type {tensor.dtype.name} and shape {tensor.shape}")
    if not tensor.shape.rank or tensor.shape[0] is not None:
        return Source(tensor, "free")
    return Source(tensor, "rows", edge.blocks.get(key, 1))


def _take_functions(operation: Any, graph: Any) -> None:
    """Have `graph` know the functions that `operation` calls."""
    for function in _functions_of(operation):
        graph._add_function_recursive(function)


def _functions_of(operation: Any) -> list[Any]:
    """The functions that `operation` calls."""
    known: Mapping[str, Any] = getattr(operation.graph, "_functions", {})
    attributes = operation.node_def.attr.values()
    names = (called.name for attribute in attributes for called in (attribute.func, *attribute.list.func))
    return [known[name] for name in names if name in known]


def _is_number(tensor: Any) -> bool:
    return bool(tensor.dtype.is_numeric)


def maker_of(operation: Any, passed_over: Callable[[str], bool]) -> tuple[str, int] | None:
    """The file and line that made `operation`, without files that are `passed_over`."""
    frames = [frame for frame in operation.traceback.get_user_frames() if not passed_over(frame.filename)]
    return (frames[-1].filename, frames[-1].lineno) if frames else None
