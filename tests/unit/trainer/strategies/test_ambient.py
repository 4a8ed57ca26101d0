# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.strategies.ambient: what the strategy of this process is like."""

from types import SimpleNamespace

import pytest

from dtjob_trainer.contract.strategy import ALONE, TRAITS
from dtjob_trainer.contract.task import Task
from dtjob_trainer.strategies import ambient


@pytest.mark.parametrize("name", TRAITS)
def test_a_task_has_the_traits_of_its_strategy_and_the_evaluator_those_of_none(name: str) -> None:
    worker = Task("job", "default", "uid", "worker", 0, strategy=name)
    evaluator = Task("job", "default", "uid", "evaluator", 0, strategy=name)
    assert ambient.traits_of(worker) is TRAITS[name]
    assert ambient.traits_of(evaluator) is ALONE


def test_a_program_that_begins_with_a_new_graph_keeps_the_strategy() -> None:
    tf = pytest.importorskip("tensorflow")
    v1 = SimpleNamespace(reset_default_graph=tf.compat.v1.reset_default_graph)
    ambient._keep_in_new_graphs(v1)
    strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
    tf.distribute.experimental_set_strategy(strategy)
    try:
        v1.reset_default_graph()
        assert tf.distribute.get_strategy() is strategy
    finally:
        tf.distribute.experimental_set_strategy(None)
    v1.reset_default_graph()
    assert not tf.distribute.has_strategy()
