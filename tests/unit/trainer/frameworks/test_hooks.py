# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.frameworks.hooks: functions of other packages are replaced, given back, and missed in words."""

import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest

from dtjob_trainer.errors import FrameworkError
from dtjob_trainer.frameworks import hooks
from dtjob_trainer.frameworks.hooks import Hook
from dtjob_trainer.frameworks.table import HOOKS

ENDS = Hook(targets=("theirs.inner:Kind.method",), does="…", gone="count", ends=True, expected="in a step")
WARNS = Hook(targets=("theirs.inner:function",), does="…", gone="save")
SOME = Hook(targets=("theirs:old", "theirs:new"), does="…", gone="count", ends=True, some=True)
ADDS = Hook(targets=("theirs.inner:Kind.added",), does="…", gone="count", adds=True)


twice = hooks.around(lambda own, *args: 2 * own(*args))


@pytest.fixture(autouse=True)
def theirs(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """A package with a function, and a method that a class inherits; all hooks are undone after the test."""
    package, inner = ModuleType("theirs"), ModuleType("theirs.inner")
    package.__version__ = "3.17"  # type: ignore[attr-defined]
    exec("class Base:\n def method(self): return 1\nclass Kind(Base): pass\ndef function(x): return x", vars(inner))
    monkeypatch.setitem(sys.modules, "theirs", package)
    monkeypatch.setitem(sys.modules, "theirs.inner", inner)
    monkeypatch.setitem(hooks.SEEN, "theirs", "Theirs 3.12 to 3.15")
    yield inner
    hooks.undo()


def test_a_function_is_replaced_until_it_is_undone(theirs: Any) -> None:
    hooks.put(WARNS, twice)
    assert (theirs.function(3), theirs.function.__name__) == (6, "function")
    hooks.undo(WARNS)
    assert theirs.function(3) == 3


def test_an_inherited_method_is_inherited_again(theirs: Any) -> None:
    with hooks.during(ENDS, twice):
        assert (theirs.Kind().method(), theirs.Base().method()) == (2, 1)
    assert "method" not in vars(theirs.Kind)


def test_a_method_of_one_object_is_replaced(theirs: Any) -> None:
    one = theirs.Kind()
    hooks.put(ENDS, twice, on=one)
    assert (one.method(), theirs.Kind().method()) == (2, 1)


def test_others_may_replace_a_replacement_which_stays(theirs: Any) -> None:
    hooks.put(WARNS, twice)
    theirs.function = str
    hooks.undo(WARNS)
    assert theirs.function is str


def test_a_method_that_a_class_lacks_is_added(theirs: Any) -> None:
    hooks.put(ADDS, lambda _: lambda self: 5)
    assert theirs.Kind().added() == 5
    hooks.undo(ADDS)
    assert not hasattr(theirs.Kind, "added")


def test_a_missing_target_ends_a_process_that_needs_it_and_names_the_versions(theirs: Any) -> None:
    del theirs.Kind
    words = "Theirs 3.17 has no theirs.inner.Kind.method, so dtjob cannot count; use Theirs 3.12 to 3.15"
    for use in (lambda: hooks.put(ENDS, twice), lambda: hooks.during(ENDS, twice).__enter__()):
        with pytest.raises(FrameworkError, match=words):
            use()


def test_a_missing_target_of_no_weight_is_a_warning(theirs: Any) -> None:
    del theirs.function
    with pytest.warns(RuntimeWarning, match=r"Theirs 3\.17 has no theirs\.inner\.function, so dtjob cannot save; use"):
        hooks.put(WARNS, twice)


def test_several_names_of_a_function_need_one_that_is_there(theirs: Any) -> None:
    with pytest.raises(FrameworkError, match=r"has no theirs\.old"):
        hooks.put(SOME, twice)
    sys.modules["theirs"].new = lambda: 1  # type: ignore[attr-defined]
    hooks.put(SOME, twice)
    assert sys.modules["theirs"].new() == 2  # type: ignore[attr-defined]


def test_a_hook_that_the_package_does_not_call_is_missed(theirs: Any) -> None:
    def noting(own: Callable[..., int]) -> Callable[..., int]:
        def method(self: Any) -> int:
            hooks.met(ENDS)
            return own(self)

        return method

    with hooks.during(ENDS, noting):
        with hooks.expected(ENDS):
            theirs.Kind().method()
        with hooks.expected(ENDS, needed=False):
            pass
        words = r"Theirs 3\.17 does not call theirs\.inner\.Kind\.method in a step, so dtjob cannot count; use Theirs"
        with pytest.raises(FrameworkError, match=words), hooks.expected(ENDS):
            pass


def test_an_error_within_is_told_and_not_the_missing_call(theirs: Any) -> None:
    with pytest.raises(ZeroDivisionError), hooks.expected(ENDS):
        raise ZeroDivisionError


def test_an_attribute_that_is_gone_is_named_with_its_class(theirs: Any) -> None:
    assert hooks.read(theirs.Kind(), "method", "count")() == 1
    with pytest.raises(FrameworkError, match=r"Theirs 3\.17 has no theirs\.inner\.Kind\._gone, so dtjob cannot count"):
        hooks.read(theirs.Kind(), "_gone", "count")


@pytest.mark.parametrize("name", [name for name, hook in HOOKS.items() if hook.package != "keras_tuner"])
def test_the_installed_versions_have_the_targets_of_each_hook(name: str) -> None:
    pytest.importorskip("tensorflow")
    pytest.importorskip("tf_keras")
    assert hooks.missing(HOOKS[name]) == []
