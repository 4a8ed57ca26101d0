# SPDX-License-Identifier: Apache-2.0
"""A model class that overrides `fit()`, for example to preprocess its data: the override runs, with our loop inside."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from dtjob_trainer.errors import FitError

P = ParamSpec("P")
R = TypeVar("R")

_PACKAGES = ("keras.", "tf_keras.")
OURS = ("scale_lr", "seed", "save")
"""The arguments of `dtjob_trainer.fit` that no `fit()` of a model has."""
_running: ContextVar[bool] = ContextVar("running", default=False)


@contextlib.contextmanager
def running() -> Iterator[None]:
    """While this lasts, the model's `fit()` has been called already, so `fit` trains and does not call it again."""
    token = _running.set(True)
    try:
        yield
    finally:
        _running.reset(token)


def runs_own_fit(trains: Callable[P, R]) -> Callable[P, R]:
    """Wraps `fit`, whose first argument is the model: if its class overrides `fit()`, that is called. `super().fit()`
    in it then trains as `trains` does."""

    @wraps(trains)
    def fitting(*args: P.args, **kwargs: P.kwargs) -> R:
        model = args[0] if args else kwargs.get("model")
        if _running.get() or own_fit_of(model) is None:
            return trains(*args, **kwargs)
        given: dict[str, Any] = {name: value for name, value in kwargs.items() if name != "model"}
        returned: R = _called(trains, model, args[1:], given)
        return returned

    return fitting


def own_fit_of(model: Any) -> type | None:
    """The class that overrides `fit()` of Keras or tf_keras for `model`. None: no class does."""
    owner = next((one for one in type(model).__mro__ if "fit" in vars(one)), None)
    if owner is None or _base_of(model) is None or owner.__module__.startswith(_PACKAGES):
        return None
    return owner


def _base_of(model: Any) -> Any:
    """The package's own class `Model`."""
    classes = (one for one in type(model).__mro__ if one.__module__.startswith(_PACKAGES))
    return next((one for one in classes if one.__name__ == "Model"), None)


def _called(trains: Callable[..., Any], model: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    base, reached = _base_of(model), False
    before, own = base.fit, vars(base).get("fit")
    ours = {name: kwargs.pop(name) for name in OURS if name in kwargs}

    def fit(self: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal reached
        if self is not model:
            return before(self, *args, **kwargs)
        reached = True
        return trains(model, *args, **_without_none(trains, kwargs), **ours)

    base.fit = fit
    try:
        returned = model.fit(*args, **kwargs)
    finally:
        if own is None:
            del base.fit
        else:
            base.fit = own
    if not reached:
        owner = own_fit_of(model)
        assert owner is not None
        raise FitError(
            f"model: {owner.__name__}.fit() does not call super().fit(), which trains under dtjob; call it there, or "
            "give train_step() what that fit() does with each batch"
        )
    return returned


def _without_none(trains: Callable[..., Any], kwargs: dict[str, Any]) -> dict[str, Any]:
    """`kwargs` without those that are None and have another default, which Keras takes for that."""
    defaults = {name: one.default for name, one in inspect.signature(trains).parameters.items()}
    return {name: value for name, value in kwargs.items() if value is not None or defaults.get(name) is None}
