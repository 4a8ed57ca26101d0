# SPDX-License-Identifier: Apache-2.0
"""What tests share that feed anything into what reads the words of others (`make fuzz`)."""

import os

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

EXAMPLES = int(os.environ.get("DTJOB_FUZZ", "0"))
"""Examples of each test, others each time; 0: few, and the same each time."""

NUMBERS = st.one_of(
    st.integers(),
    st.floats(),
    st.sampled_from((0, -1, 2**31, 2**53, 2**63, 2**64, -(2**63) - 1, 10**400, float("nan"), float("inf"), 1e308)),
)
TEXTS = st.one_of(st.text(max_size=20), st.sampled_from(("", "\ud800", "\x00", "NaN", "0", "-1", "x" * 70_000)))
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=8,
)
"""Whatever JSON can say, and more."""


def fuzzed(few: int) -> settings:
    """The settings of such a test. `few`: how many examples the unit tier plays."""
    return settings(
        max_examples=EXAMPLES or few,
        derandomize=not EXAMPLES,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
