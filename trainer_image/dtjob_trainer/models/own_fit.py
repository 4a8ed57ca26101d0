# SPDX-License-Identifier: Apache-2.0
"""A model class that overrides `fit()` or `evaluate()`, for example to preprocess its data.

The override runs, with our loop inside. Of its `evaluate()`, a validation takes the data that it gives
`super().evaluate()`, as Keras calls the override for each validation.
"""

import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from dtjob_trainer.errors import FitError
from dtjob_trainer.frameworks import hooks, keras3, packages, tf_keras
from dtjob_trainer.placement.shard import setting

P = ParamSpec("P")
R = TypeVar("R")

OURS = ("scale_lr", "seed", "save")
"""The arguments of `dtjob_trainer.fit` that no `fit()` of a model has."""
_MENDS = {
    "fit": "which trains under dtjob; call it there, or give train_step() what that fit() does with each batch",
    "evaluate": "which evaluates under dtjob; call it there, or give test_step() what that evaluate() does",
}
_running: ContextVar[frozenset[str]] = ContextVar("running", default=frozenset())


class _ReachedError(BaseException):
    """Leaves an override once it is known what it gives the method of the package: the arguments by name."""


def running(name: str) -> AbstractContextManager[None]:
    """While this lasts, the model's method `name` has been called already, so ours does not call it again."""
    return setting(_running, _running.get() | {name})


def runs_own(ours: Callable[P, R]) -> Callable[P, R]:
    """Wraps `fit` or `evaluate`, whose first argument is the model: if its class overrides the method of that name,
    that is called. `super().fit()` in it then trains as `ours` does."""
    name = getattr(ours, "__name__", "")

    @wraps(ours)
    def calling(*args: P.args, **kwargs: P.kwargs) -> R:
        model = args[0] if args else kwargs.get("model")
        if name in _running.get() or own_of(model, name) is None:
            return ours(*args, **kwargs)
        given: dict[str, Any] = {name: value for name, value in kwargs.items() if name != "model"}
        taken = {each: given.pop(each) for each in OURS if each in given}

        def reached(*args: Any, **kwargs: Any) -> Any:
            return ours(model, *args, **_without_none(ours, kwargs), **taken)  # type: ignore[arg-type]

        returned: R = _called(name, reached, model, args[1:], given)
        return returned

    return calling


def own_of(model: Any, name: str) -> type | None:
    """The class that overrides the method `name` of Keras or tf_keras for `model`. None: no class does."""
    owner = packages.home(type(model), name)
    if owner is None or _base_of(model) is None or packages.is_of(owner):
        return None
    return owner


def given_to_evaluate(model: Any, data: Any, **arguments: Any) -> Any:
    """What the `evaluate()` of the model's class makes of `data`, a `validation_data` of any form. `data` itself if no
    class overrides the method.

    - arguments: what Keras's `fit` gives `evaluate`, beside the data.
    """
    if own_of(model, "evaluate") is None:
        return data
    parts = tuple(data) if isinstance(data, tuple | list) else (data,)
    x, y, weights = (*parts, None, None)[:3]
    signature = inspect.signature(_base_of(model).evaluate)

    def reached(*args: Any, **kwargs: Any) -> Any:
        raise _ReachedError(signature.bind_partial(model, *args, **kwargs).arguments)

    given = {"x": x, "y": y, "sample_weight": weights, "return_dict": True} | arguments
    try:
        _called("evaluate", reached, model, (), given)
    except _ReachedError as error:
        found = [error.args[0].get(name) for name in ("x", "y", "sample_weight")]
        while found[-1] is None and len(found) > 1:
            found.pop()
        return tuple(found)
    raise AssertionError("an override that does not reach the package's method is refused")


def _base_of(model: Any) -> Any:
    """The package's own class `Model`."""
    return next((one for one in type(model).__mro__ if one.__name__ == "Model" and packages.is_of(one)), None)


def _called(name: str, reaches: Callable[..., Any], model: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call the method `name` of `model`, with `reaches` in place of the package's."""
    base, reached = _base_of(model), False
    package = keras3 if packages.is_of(base, "keras.") else tf_keras

    def reach(before: Callable[..., Any], self: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal reached
        if self is not model:
            return before(self, *args, **kwargs)
        reached = True
        return reaches(*args, **kwargs)

    with hooks.during(package.FIT if name == "fit" else package.EVALUATE, hooks.around(reach), on=base):
        returned = getattr(model, name)(*args, **kwargs)
    if not reached:
        owner = getattr(own_of(model, name), "__name__", "")
        raise FitError(f"model: {owner}.{name}() does not call super().{name}(), {_MENDS[name]}")
    return returned


def _without_none(trains: Callable[..., Any], kwargs: dict[str, Any]) -> dict[str, Any]:
    """`kwargs` without those that are None and have another default, which Keras takes for that."""
    defaults = {name: one.default for name, one in inspect.signature(trains).parameters.items()}
    return {name: value for name, value in kwargs.items() if value is not None or defaults.get(name) is None}
