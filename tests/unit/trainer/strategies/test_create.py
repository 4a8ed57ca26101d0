"""dtjob_trainer.strategies.create: every strategy that has traits can be made, and no other."""

import pytest

from dtjob_trainer.contract.strategy import TRAITS
from dtjob_trainer.contract.task import Task
from dtjob_trainer.errors import StrategyError
from dtjob_trainer.strategies import create


def test_there_is_a_way_to_make_every_strategy() -> None:
    assert create._MAKERS.keys() == TRAITS.keys()


def test_another_name_is_refused() -> None:
    with pytest.raises(StrategyError, match=r"spec\.strategy 'Other' is not one"):
        create.create(Task("job", "default", "uid", "worker", 0, strategy="Other"))
