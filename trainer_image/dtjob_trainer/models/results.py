# SPDX-License-Identifier: Apache-2.0
"""The results of a model's metrics by one traced function. Read one by one, each takes a dozen operations."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.eager import context

from dtjob_trainer.models.instances import overridden


class Results:
    """Reads the metrics of one model often. For one replica, which has all of their states."""

    def __init__(self, package: str) -> None:
        """`package`: the model's; classes of its own are in modules below it."""
        self._package = package
        self._metrics: list[Any] = []
        self._function: Callable[[], Any] | None = None
        self._options: Any = None

    @contextlib.contextmanager
    def known(self, metrics: Sequence[Any]) -> Iterator[None]:
        """While this lasts, `result()` of each of `metrics` gives what was read at the beginning.

        A class of the program's own is left out: what its Python code does is not known, and a trace runs it once.
        """
        if self._function is None:
            self._metrics = [m for m in metrics if str(type(m).__module__).startswith(f"{self._package}.")]
            self._function, self._options = self._traced(), _without_rewriting()
        with _call_options(self._options):
            results = self._function()
        with contextlib.ExitStack() as stack:
            for metric, result in zip(self._metrics, results, strict=True):
                stack.enter_context(overridden(metric, result=lambda result=result: result))
            yield

    def _traced(self) -> Callable[[], Any]:
        function = tf.function(lambda: [metric.result() for metric in self._metrics], autograph=False)
        concrete: Callable[[], Any] = function.get_concrete_function()
        return concrete


def _without_rewriting() -> Any:
    """Options of a call whose graph is run as it was traced: rewritten, `x / 3` becomes `x * (1 / 3)`."""
    config = context.context().config
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    return context.FunctionCallOptions(config_proto=config)


@contextlib.contextmanager
def _call_options(options: Any) -> Iterator[None]:
    """While this lasts, this thread calls functions with `options`."""
    here = context.context()
    before, here.function_call_options = here.function_call_options, options
    try:
        yield
    finally:
        here.function_call_options = before
