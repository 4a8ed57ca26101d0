# SPDX-License-Identifier: Apache-2.0
"""Replaces functions of other packages. Each replacement is a `Hook`, and `table.py` lists all of them.

A hook is in place for the rest of the process (`put`), or for a while (`during`). `missing` says which hooks these
versions of the packages do not have, and `expected` whether the packages still call a hook.
"""

import contextlib
import functools
import sys
import threading
import types
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

import wrapt

from dtjob_trainer.errors import FrameworkError

SEEN = {
    "tensorflow": "TensorFlow 2.20 or 2.21",
    "keras": "Keras 3.12 to 3.15",
    "tf_keras": "tf_keras 2.20 or 2.21",
    "keras_tuner": "KerasTuner 1.4",
}
"""The versions of each package in which its names were seen."""
IMPORTED_LATE = ("tf_keras", "keras_tuner")
"""Packages that only the program imports. Their hooks are put in place when it does."""

Wrap = Callable[[Any], Any]
"""Makes the replacement of a function, given the function."""


@dataclass(frozen=True, kw_only=True)
class Hook:
    """A replacement in another package."""

    targets: tuple[str, ...]
    """What is replaced: `module:name` or `module:Class.name`. Several targets get the same kind of replacement."""
    does: str
    """What the replacement does, as a sentence for the page of all hooks."""
    gone: str
    """What cannot be done if a target is missing: it completes "…, so dtjob cannot"."""
    lasts: Literal["process", "training", "trace", "call"] = "process"
    """How long the hook is in place."""
    ends: bool = False
    """Whether a process that needs the hook ends if a target is missing. If not, a warning says what is lost."""
    adds: bool = False
    """Whether the class has no such method, and gets one."""
    some: bool = False
    """Whether a target may be missing if another one is there, as old names of one class."""
    expected: str = ""
    """When the package must call the hook. Empty: this is not checked."""

    @property
    def package(self) -> str:
        """The package of the targets."""
        return self.targets[0].partition(":")[0].partition(".")[0]


def in_training(target: str, *, does: str, gone: str, expected: str = "") -> Hook:
    """A hook that is in place while models train. A process that trains ends if its target is missing."""
    return Hook(targets=(target,), does=does, gone=gone, lasts="training", ends=True, expected=expected)


def around(function: Callable[..., Any]) -> Wrap:
    """A `Wrap`: `function` is called in place of a replaced one, which it is given before the arguments of the call."""

    def wrap(own: Any) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            return function(own, *args, **kwargs)

        return call

    return wrap


def put(hook: Hook, wrap: Wrap, on: Any = None) -> None:
    """Have the targets of `hook` be what `wrap` makes of them, for the rest of the process or until `undo`.

    - on: the object, or class, whose attributes are replaced in place of those of the targets' own classes.

    Hooks in a package that is not imported yet are put in place when it is. Raises FrameworkError for a missing target
    of a hook that `ends`.
    """
    for target in hook.targets:
        module = target.partition(":")[0]
        put_target = functools.partial(_put_target, hook, target, wrap, on)
        if on is None and module.partition(".")[0] in IMPORTED_LATE and module not in sys.modules:
            wrapt.register_post_import_hook(put_target, module)
        else:
            put_target()


def _put_target(hook: Hook, target: str, wrap: Wrap, on: Any, *_: Any) -> None:
    if (found := _found(hook, target, on)) is not None:
        owner, name = found
        own, made = _own(owner, name), _made(wrap, getattr(owner, name, None))
        _set(owner, name, made)
        _put.append((hook, owner, name, own, made))


def undo(hook: Hook | None = None) -> None:
    """Take back what `put` has done for `hook`, but not what others have put in its place since. None: of all hooks."""
    for one in [each for each in reversed(_put) if hook is None or each[0] is hook]:
        _put.remove(one)
        _, owner, name, own, made = one
        if getattr(owner, name, None) is made:
            _set_back(owner, name, own)


@contextlib.contextmanager
def during(hook: Hook, wrap: Wrap, on: Any = None) -> Iterator[None]:
    """While this lasts, the targets of `hook` are what `wrap` makes of them. `on` and errors are as for `put`."""
    found = [each for target in hook.targets if (each := _found(hook, target, on)) is not None]
    before = [(owner, name, _own(owner, name)) for owner, name in found]
    try:
        for owner, name in found:
            _set(owner, name, _made(wrap, getattr(owner, name, None)))
        yield
    finally:
        for owner, name, own in before:
            _set_back(owner, name, own)


def met(hook: Hook) -> None:
    """Note that a replacement of `hook` was called."""
    with _lock:
        _met[hook] += 1


def noted(hook: Hook, function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, whose calls are noted as those of a replacement of `hook`."""

    def call(*args: Any, **kwargs: Any) -> Any:
        met(hook)
        return function(*args, **kwargs)

    return call


@contextlib.contextmanager
def expected(hook: Hook, needed: bool = True) -> Iterator[None]:
    """Within this the package must call `hook`, if it is `needed`. Raises FrameworkError at the end otherwise."""
    before = _met[hook]
    yield
    if needed and _met[hook] == before:
        raise _cannot(hook, f"does not call {hook.targets[0].replace(':', '.')} {hook.expected}")


def missing(hook: Hook) -> list[str]:
    """Those targets of `hook` that the installed versions lack. Imports the modules of the targets."""
    found = [target for target in hook.targets if resolved(target, hook.adds) is None]
    return [] if hook.some and len(found) < len(hook.targets) else found


def read(owner: Any, name: str, cannot: str) -> Any:
    """The attribute `name` of an object of another package. Raises FrameworkError if the object has none.

    - cannot: what dtjob cannot do without the attribute.
    """
    try:
        return getattr(owner, name)
    except AttributeError:
        kind = owner if isinstance(owner, type | types.ModuleType) else type(owner)
        raise no_such(kind, name, cannot) from None


def attribute(name: str, cannot: str) -> Callable[[Any], Any]:
    """What reads the attribute `name` of an object of another package. `cannot` and errors are as for `read`."""

    def get(owner: Any) -> Any:
        return read(owner, name, cannot)

    return get


def method(name: str, cannot: str) -> Callable[..., Any]:
    """What calls the method `name` of an object of another package. `cannot` and errors are as for `read`."""

    def call(owner: Any, *args: Any) -> Any:
        return read(owner, name, cannot)(*args)

    return call


def imported(target: str) -> Callable[..., Any]:
    """The function `module:name` of another package. Its module is imported when the function is called."""
    module, _, name = target.partition(":")

    def call(*args: Any, **kwargs: Any) -> Any:
        return getattr(import_module(module), name)(*args, **kwargs)

    return call


def no_such(kind: Any, name: str, cannot: str) -> FrameworkError:
    """The error that a class or module `kind` of another package has no attribute `name`."""
    module = getattr(kind, "__module__", kind.__name__)
    package = module.partition(".")[0]
    use = f"; use {SEEN[package]}" if package in SEEN else ""
    where = module if isinstance(kind, types.ModuleType) else f"{module}.{kind.__qualname__}"
    return FrameworkError(f"{version(package)} has no {where}.{name}, so dtjob cannot {cannot}{use}")


def version(package: str) -> str:
    """The name and version of an imported package."""
    name = SEEN.get(package, package).partition(" ")[0]
    return f"{name} {getattr(sys.modules.get(package), '__version__', '')}".strip()


_met: Counter[Hook] = Counter()
_lock = threading.Lock()
_put: list[tuple[Hook, Any, str, Any, Any]] = []
"""For each replacement: the hook, whose attribute it is and its name, what was there before, and the replacement."""
_NONE = object()


def _found(hook: Hook, target: str, on: Any) -> tuple[Any, str] | None:
    """The object whose attribute is replaced, and the name of the attribute.

    None if it is left as it is. Raises FrameworkError for a missing target of a hook that `ends`.
    """
    found = resolved(target, hook.adds) if on is None else (on, target.rpartition(".")[2].rpartition(":")[2])
    if found is not None and (hook.adds or hasattr(*found)):
        return found
    if not hook.some or missing(hook):
        error = _cannot(hook, f"has no {target.replace(':', '.')}")
        if hook.ends:
            raise error
        warnings.warn(str(error), RuntimeWarning, stacklevel=4)
    return None


def _cannot(hook: Hook, why: str) -> FrameworkError:
    return FrameworkError(f"{version(hook.package)} {why}, so dtjob cannot {hook.gone}; use {SEEN[hook.package]}")


def resolved(target: str, adds: bool = False) -> tuple[Any, str] | None:
    """The object of a target and the name of its attribute; None if a part of it is missing."""
    module, _, path = target.partition(":")
    *parts, name = path.split(".")
    try:
        owner = functools.reduce(getattr, parts, import_module(module))
        if not adds:
            getattr(owner, name)
    except (ImportError, AttributeError):
        return None
    return owner, name


def _own(owner: Any, name: str) -> Any:
    """The attribute that `owner` has itself, and does not inherit. `_NONE` if there is none."""
    return getattr(owner, name) if isinstance(owner, types.ModuleType) else vars(owner).get(name, _NONE)


def _set(owner: Any, name: str, value: Any) -> None:
    if isinstance(owner, type | types.ModuleType):
        setattr(owner, name, value)
    else:
        vars(owner)[name] = value  # past Keras's own `__setattr__`, which keeps book of attributes


def _set_back(owner: Any, name: str, own: Any) -> None:
    if own is not _NONE:
        _set(owner, name, own)
    elif isinstance(owner, type):
        delattr(owner, name)
    else:
        del vars(owner)[name]


def _made(wrap: Wrap, function: Any) -> Any:
    """The replacement of `function`, with the name and the documentation of that."""
    replacement = wrap(function)
    if isinstance(replacement, types.FunctionType) and not hasattr(replacement, "__wrapped__"):
        functools.update_wrapper(replacement, function)
    return replacement
