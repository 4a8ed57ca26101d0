# SPDX-License-Identifier: Apache-2.0
"""The forms of labels (tests/refusals/metadata.py has an API server's answers to more of them)."""

from typing import Any

import pytest

from dtjob.api.label_forms import check_name, check_value


@pytest.mark.parametrize("name", ["a", "A_b.c-1", "example.com/a", f"{'a' * 253}/{'b' * 63}", "a-b.c1/d"])
def test_names_that_are_taken(name: str) -> None:
    check_name(name)


@pytest.mark.parametrize(
    "name", ["", "/a", "a/", "a b", "-a", "a.", "a..b/c", "a.-b/c", "a-.b/c", "A/b", "b" * 64, f"{'a' * 254}/b", 1]
)
def test_names_that_are_refused(name: Any) -> None:
    with pytest.raises(ValueError, match="is no label's name; write letters, digits"):
        check_name(name)


def test_the_error_of_a_bad_name_says_what_the_name_is_of() -> None:
    with pytest.raises(ValueError, match="'a b' is no finalizer's name"):
        check_name("a b", "finalizer")


@pytest.mark.parametrize("value", ["", "a", "A_b.c-1", "1" * 63])
def test_values_that_are_taken(value: str) -> None:
    check_value("team", value)


@pytest.mark.parametrize(
    ("value", "said"), [(5, "is no text"), ("a b", "is no label's value"), ("1" * 64, "at most 63")]
)
def test_values_that_are_refused(value: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        check_value("team", value)
