# SPDX-License-Identifier: Apache-2.0
"""What decides whether a process of TFJob's program starts again."""

import pytest

from benchmarks.operators import local_recovery, recovery, training_jobs
from benchmarks.operators.local_recovery import is_tried_again
from benchmarks.programs.recovery import TRY_AGAIN


@pytest.mark.parametrize(("code", "again"), [(0, False), (1, False), (127, False), (-9, True), (137, True)])
def test_a_signal_and_what_looks_like_one_is_tried_again(code: int, again: bool) -> None:
    assert is_tried_again(code) is again


def test_the_program_asks_for_it_where_it_has_lost_a_peer() -> None:
    assert is_tried_again(TRY_AGAIN)


def test_both_scenarios_kill_the_same_tasks_of_the_same_groups() -> None:
    assert local_recovery.NAMES.keys() == training_jobs.OWN_LOOPS.keys() == recovery.VICTIMS.keys()
    for strategy in recovery.VICTIMS:
        ours, nodes = local_recovery.scenario(strategy), recovery.scenario(strategy)
        assert (ours.units, ours.goals) == (nodes.units, nodes.goals)
        assert ours.options.items() <= nodes.options.items()
