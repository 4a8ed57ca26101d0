# SPDX-License-Identifier: Apache-2.0
"""Times and durations in words."""

import pytest

from dtjob.times import duration


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (-3, "0s"), (45.4, "45s"), (200, "3m20s"), (3600, "1h"), (7500, "2h5m"), (273600, "3d4h")],
)
def test_durations_read_as_kubectls_do(seconds: float, text: str):
    assert duration(seconds) == text
