# SPDX-License-Identifier: Apache-2.0
"""Numbers of training as text."""

import pytest

from dtjob.api.status.progress import MOST_METRICS, metric_list, number_text, speed_text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (4, "4"),
        (-3, "-3"),
        (2.0, "2"),
        (0.0038, "0.0038"),
        (0.123456789, "0.123457"),
        (1234567.5, "1.23457e+06"),
        (1e300, "1e+300"),
        (2**62, "4611686018427387904"),
        (False, "0"),
    ],
)
def test_numbers_are_written_as_short_text(value: float, text: str):
    assert number_text(value) == text


@pytest.mark.parametrize(("value", "text"), [(57.123, "57.1"), (1234.56, "1234.6"), (2.5, "2.5"), (0.012345, "0.0123")])
def test_speeds_are_written_with_fewer_digits(value: float, text: str):
    assert speed_text(value) == text


def test_metrics_are_a_list_of_bounded_length():
    made = metric_list({"loss": 0.5, "accuracy": 1})
    assert [(one.name, one.value) for one in made] == [("loss", "0.5"), ("accuracy", "1")]
    assert len(metric_list({str(number): number for number in range(100)})) == MOST_METRICS
