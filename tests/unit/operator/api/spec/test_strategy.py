# SPDX-License-Identifier: Apache-2.0
"""Strategies."""

import pytest

from dtjob.api.spec.strategy import Strategy
from dtjob.objects.topology import CONNECTED_ROLES
from tests.unit.operator import builders


@pytest.mark.parametrize("strategy", Strategy)
def test_a_single_pod_strategy_connects_no_roles(strategy: Strategy) -> None:
    assert strategy.single_pod == (strategy not in CONNECTED_ROLES)
    assert builders.job(strategy.value).spec.strategy is strategy
