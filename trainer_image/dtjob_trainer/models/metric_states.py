# SPDX-License-Identifier: Apache-2.0
"""How the metrics of a model are read, of the states of all replicas, and begun anew."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from dtjob_trainer.frameworks import graphs, hooks, keras3, packages, tensorflow
from dtjob_trainer.frameworks import variables as framework
from dtjob_trainer.models.kept_variables import copies_of, sum_of
from dtjob_trainer.strategies.collective import Group

_ADD_UP = (tf.VariableAggregation.SUM, tf.VariableAggregation.MEAN)


class Results:
    """Reads the metrics of one model by one traced function: read one by one, each takes a dozen operations."""

    def __init__(self, package: str) -> None:
        """`package`: the model's; classes of its own are in modules below it."""
        self._package = package
        self._metrics: list[Any] = []
        self._function: Callable[..., Any] | None = None
        self._copies: Callable[[], Any] | None = None

    def copies(self, variables: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
        """The values of the `tf.Variable`s that replicas hold of each variable (float64), read by one function.

        They are the same variables in each call.
        """
        if self._copies is None:
            self._copies = _traced(lambda: [tf.stack([tf.cast(v, tf.float64) for v in held]) for held in variables])
        return [tuple(values.numpy()) for values in self._copies()]

    @contextlib.contextmanager
    def known(self, metrics: Sequence[Any], states: Sequence[tuple[Any, Any]] = ()) -> Iterator[None]:
        """While this lasts, `result()` of each of `metrics` gives what was read at the beginning.

        A class of the program's own is left out: what its Python code does is not known, and a trace runs it once.

        - states: if several replicas count, variables of Keras 3, each with the value of all replicas together. They
          are the same variables in each call.
        """
        if self._function is None:
            self._metrics = [m for m in metrics if packages.is_of(type(m), f"{self._package}.")]

            def read(*values: Any) -> list[Any]:
                instead = [(variable, value) for (variable, _), value in zip(states, values, strict=True)]
                with keras.StatelessScope(instead) if instead else contextlib.nullcontext():
                    return [metric.result() for metric in self._metrics]

            self._function = _traced(read, *(tf.TensorSpec(value.shape, value.dtype) for _, value in states))
        with tensorflow.graphs_as_traced():
            results = self._function(*(value for _, value in states))
        with contextlib.ExitStack() as stack:
            for metric, result in zip(self._metrics, results, strict=True):
                stack.enter_context(hooks.during(keras3.METRIC_RESULT, partial(_giving, result), on=metric))
            yield


def of_keras3(variables: Sequence[Any], group: Group, often: Results | None) -> list[tuple[Any, Any]]:
    """Each of these variables of Keras 3's metrics, with the value that all replicas' states come to. Collective.

    - often: what reads them, if callbacks see each step.
    """
    held = [copies_of(group.strategy, variable) for variable in variables]
    number, sums = len(held[0]) * group.tasks if held else 1, []
    for variable, copies in zip(variables, often.copies(held) if often else held, strict=True):
        if variable.aggregation == "only_first_replica":
            copies = copies[:1] if group.index == 0 else (np.zeros(variable.shape),)
        sums.append(sum_of(copies))
    found = []
    for variable, total in zip(variables, group.sum_each(sums), strict=True):
        merged = total / number if variable.aggregation in ("mean", "none") else total
        found.append((variable, tf.constant(merged.astype(variable.dtype))))
    return found


@contextlib.contextmanager
def of_tf_keras(variables: Sequence[Any], group: Group) -> Iterator[None]:
    """While this lasts, each of `variables` (TensorFlow's) reads as all replicas' states of it together. Collective.

    By itself tf_keras makes an exchange for each variable as it reads it: those of the loss alone took as long as a
    small step. Left to TensorFlow: variables that replicas do not change each by itself, what is neither sum nor mean,
    and what a `tf.function` reads, which would keep the values that it was traced with.
    """
    merged = {id(v): v for v in variables if graphs.is_put_together_on_read(v) and v.aggregation in _ADD_UP}
    if not merged:
        yield
        return
    sums = [sum_of(group.strategy.experimental_local_results(v)) for v in merged.values()]
    values = {}
    for variable, total in zip(merged.values(), group.sum_each(sums), strict=True):
        copies = group.replicas if variable.aggregation == tf.VariableAggregation.MEAN else 1
        values[id(variable)] = tf.constant((total / copies).astype(variable.dtype.as_numpy_dtype))

    def read(own: Callable[[Any], Any], variable: Any) -> Any:
        return values[id(variable)] if id(variable) in values and tf.executing_eagerly() else own(variable)

    with hooks.during(framework.COUNTED_READ, hooks.around(read)):
        yield


def reset(model: Any) -> None:
    """Begin the metrics of `model` anew, without an exchange between tasks for each of their variables.

    What `assign` of a variable of replicas that is summed when it is read (ON_READ) gives is the new sum: TensorFlow
    reads it there and then, in one all-reduce for each variable, also where nobody takes it. Between GPUs of several
    tasks it reduces no int32, so that a metric which counts in that type could not be reset at all.
    """

    def unread(
        assign: Callable[..., Any],
        self: Any,
        value: Any,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> Any:
        del read_value  # tf_keras gives it by its place where types are mixed
        done = assign(self, value, use_locking, name, False)
        return self if done is None else done  # within a graph it is an operation

    with hooks.during(framework.COUNTED_ASSIGNED, hooks.around(unread)):
        model.reset_metrics()


def _giving(result: Any, _: Any) -> Callable[[], Any]:
    return lambda: result


def _traced(function: Callable[..., Any], *signature: Any) -> Callable[..., Any]:
    traced = tf.function(function, autograph=False, input_signature=signature)
    concrete: Callable[..., Any] = traced.get_concrete_function()
    return concrete
