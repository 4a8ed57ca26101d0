# SPDX-License-Identifier: Apache-2.0
"""The built-in rules decide about every cause."""

import pytest

from dtjob.plan.failure.built_in import BUILT_IN
from dtjob.plan.record.failure import Cause


@pytest.mark.parametrize("cause", list(Cause))
def test_each_cause_has_one_built_in_rule(cause: Cause) -> None:
    assert [one.charged for one in BUILT_IN].count(cause.charged) == 1
