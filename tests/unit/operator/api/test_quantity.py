# SPDX-License-Identifier: Apache-2.0
"""The forms of a quantity."""

from fractions import Fraction
from typing import Any

import pytest

from dtjob.api.quantity import is_quantity, parse


@pytest.mark.parametrize(
    ("written", "number"),
    [
        *(("4", 4), (4, 4), ("0.5", "1/2"), (1.5, "3/2"), ("500m", "1/2"), ("100u", "1/10000"), ("7n", "7/1000000000")),
        *(("2k", 2000), ("1M", 10**6), ("1e3", 1000), ("1E2", 100), ("1E", 10**18), ("25e-1", "5/2")),
        *(("1Ki", 1024), ("16Gi", 16 * 1024**3), ("1.5Mi", 3 * 2**19), (".5", "1/2"), ("5.", 5), (" 2 ", 2)),
    ],
)
def test_each_form_is_read(written: Any, number: Any):
    assert parse(written) == Fraction(number)
    assert is_quantity(written)


@pytest.mark.parametrize("written", ["", "four", "4 Gi", "4GiB", "1K", "--1", "1e", "Gi", "1e9999", "True"])
def test_a_text_that_is_no_quantity_is_an_error(written: str):
    with pytest.raises(ValueError, match="is no quantity"):
        parse(written)
    assert not is_quantity(written)
