# SPDX-License-Identifier: Apache-2.0
"""The results of a model's metrics by one traced function. Read one by one, each takes a dozen operations."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import keras
import tensorflow as tf

from dtjob_trainer.frameworks import hooks, keras3, packages, tensorflow


class Results:
    """Reads the metrics of one model often."""

    def __init__(self, package: str) -> None:
        """`package`: the model's; classes of its own are in modules below it."""
        self._package = package
        self._metrics: list[Any] = []
        self._function: Callable[..., Any] | None = None
        self._parts: Callable[[], Any] | None = None

    def parts(self, variables: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
        """The values of the `tf.Variable`s that replicas hold of each variable (float64), read by one function.

        They are the same variables in each call.
        """
        if self._parts is None:
            self._parts = _traced(lambda: [tf.stack([tf.cast(v, tf.float64) for v in held]) for held in variables])
        return [tuple(values.numpy()) for values in self._parts()]

    @contextlib.contextmanager
    def known(self, metrics: Sequence[Any], states: Sequence[tuple[Any, Any]] = ()) -> Iterator[None]:
        """While this lasts, `result()` of each of `metrics` gives what was read at the beginning.

        A class of the program's own is left out: what its Python code does is not known, and a trace runs it once.

        - states: if several replicas count, variables of Keras 3, each with the value of all replicas together. They
          are the same variables in each call.
        """
        if self._function is None:
            self._metrics = [m for m in metrics if packages.is_of(type(m), f"{self._package}.")]
            self._function = self._read_by(states)
        with tensorflow.graphs_as_traced():
            results = self._function(*(value for _, value in states))
        with contextlib.ExitStack() as stack:
            for metric, result in zip(self._metrics, results, strict=True):
                stack.enter_context(hooks.during(keras3.METRIC_RESULT, _giving(result), on=metric))
            yield

    def _read_by(self, states: Sequence[tuple[Any, Any]]) -> Callable[..., Any]:
        def read(*values: Any) -> list[Any]:
            instead = [(variable, value) for (variable, _), value in zip(states, values, strict=True)]
            with keras.StatelessScope(instead) if instead else contextlib.nullcontext():
                return [metric.result() for metric in self._metrics]

        return _traced(read, *(tf.TensorSpec(value.shape, value.dtype) for _, value in states))


def _giving(result: Any) -> hooks.Wrap:
    return lambda _: lambda: result


def _traced(function: Callable[..., Any], *signature: Any) -> Callable[..., Any]:
    traced = tf.function(function, autograph=False, input_signature=signature)
    concrete: Callable[..., Any] = traced.get_concrete_function()
    return concrete
