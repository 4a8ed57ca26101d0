"""dtjob_trainer.strategies.ambient: what the strategy of this process is like."""

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
