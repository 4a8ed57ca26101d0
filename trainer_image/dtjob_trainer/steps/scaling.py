# SPDX-License-Identifier: Apache-2.0
"""Whether a custom `train_step` scales its gradients itself, because it is written for several replicas."""

import dis
import inspect
import sysconfig
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_OF_REPLICAS = {"num_replicas_in_sync", "get_replica_context"}
"""What a step names that is written for several replicas."""

_PACKAGES = (*(sysconfig.get_paths()[name] for name in ("purelib", "stdlib")), str(Path(__file__).parents[1]))
"""Where functions are that are not the program's own."""


def scaled_at(model: Any) -> str | None:
    """Where the class of `model`, a base of it, or a function of the program that they call, names replicas.

    As "file:line (name)". Such a step is taken to make its gradients add up to one device's. None: any other is taken
    as written for one device.
    """
    package = {"keras", "tf_keras"}
    kinds = [kind for kind in type(model).__mro__ if kind.__module__.partition(".")[0] not in package]
    parts = [getattr(part, "fget", None) or part for kind in kinds for part in vars(kind).values()]
    queue = [inspect.unwrap(part) for part in parts if callable(part)]
    seen: set[types.CodeType] = set()
    while queue:
        function = queue.pop(0)
        if not isinstance(function, types.FunctionType) or function.__code__ in seen:
            continue
        seen.add(function.__code__)
        names = dict(_names(function.__code__))
        for name in sorted(_OF_REPLICAS & names.keys()):
            return f"{function.__code__.co_filename}:{names[name]} ({name})"
        called = (inspect.unwrap(each) for name in names if callable(each := function.__globals__.get(name)))
        queue += [each for each in called if isinstance(each, types.FunctionType) and _is_of_program(each)]
    return None


def _is_of_program(function: types.FunctionType) -> bool:
    return not function.__code__.co_filename.startswith(_PACKAGES)


def _names(code: types.CodeType) -> Iterator[tuple[str, int]]:
    """The names of globals and attributes that a function uses, and those within it, each with its line."""
    for instruction in dis.get_instructions(code):
        if instruction.argval in code.co_names:
            where = instruction.positions
            yield str(instruction.argval), (where and where.lineno) or code.co_firstlineno
    for part in code.co_consts:
        if isinstance(part, types.CodeType):
            yield from _names(part)
