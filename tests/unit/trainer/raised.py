# SPDX-License-Identifier: Apache-2.0
"""Errors as code of TensorFlow, or of a program, raises them: with the frames that they come through."""

from pathlib import Path
from typing import NoReturn, TypeVar

E = TypeVar("E", bound=BaseException)

AS_TENSORFLOW = 'exec(compile("raise {error}", "/any/tensorflow/python/eager/execute.py", "exec"))'
"""A line of a program; `error` is an expression."""


def raise_as_tensorflow(error: BaseException) -> NoReturn:
    """Raise `error` from a file of TensorFlow."""
    exec(compile("raise error", "/any/tensorflow/python/eager/execute.py", "exec"), {"error": error})
    raise AssertionError("it was raised")


def of_tensorflow(error: E) -> E:
    """`error`, after TensorFlow has raised it."""
    try:
        raise_as_tensorflow(error)
    except type(error) as raised:
        return raised


def of_a_program(path: Path, code: str, **names: object) -> BaseException:
    """The error that ends a program whose file has this code. The file is not read, so it need not be there.

    - names: what the code finds beside its own names.
    """
    try:
        exec(compile(code, str(path), "exec"), {"__name__": "__main__", **names})
    except BaseException as raised:
        return raised
    raise AssertionError("the program has ended well")
