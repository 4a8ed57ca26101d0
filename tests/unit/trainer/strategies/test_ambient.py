# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.strategies.ambient: what the strategy of this process is like."""

import gc
import threading

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


@pytest.mark.parametrize("package", ["keras", "tf_keras"])
def test_a_program_that_begins_with_a_new_graph_keeps_the_strategy(
    package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tf, backend = pytest.importorskip("tensorflow"), pytest.importorskip(package).backend
    v1, v2 = tf.compat.v1, tf.compat.v2
    for home in (v1, v2.compat.v1, v1.compat.v1):
        monkeypatch.setattr(home, "reset_default_graph", home.reset_default_graph)
    ambient.keep_in_new_graphs()
    strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
    tf.distribute.experimental_set_strategy(strategy)
    try:
        with strategy.scope():
            backend.clear_session()
        assert tf.distribute.get_strategy() is strategy
        collects = threading.Thread(target=gc.collect)  # a scope that was not left complains there
        collects.start()
        collects.join()
    finally:
        tf.distribute.experimental_set_strategy(None)
    backend.clear_session()
    assert not tf.distribute.has_strategy()
