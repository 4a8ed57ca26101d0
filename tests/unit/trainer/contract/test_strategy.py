# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.contract.strategy: what each strategy is like."""

import pytest

from dtjob_trainer.contract.strategy import ALONE, TRAITS
from dtjob_trainer.contract.task import ROLES, Task


def those(trait: str) -> set[str]:
    """The strategies that have `trait`."""
    return {name for name, traits in TRAITS.items() if getattr(traits, trait)}


@pytest.mark.parametrize(
    ("trait", "names"),
    [
        ("cluster_roles", {"MultiWorkerMirrored", "ParameterServer"}),
        ("serving_roles", {"ParameterServer"}),
        ("dispensable_roles", {"ParameterServer"}),
        ("synchronous", {"OneDevice", "Mirrored", "CentralStorage", "MultiWorkerMirrored", "TPU"}),
        ("asynchronous", {"ParameterServer"}),
        ("distributed", set(TRAITS) - {"Default"}),
        ("collective", {"MultiWorkerMirrored"}),
        ("remote_steps", {"ParameterServer", "TPU"}),
        ("shared_variables", {"CentralStorage", "ParameterServer"}),
        ("central_storage", {"CentralStorage"}),
        ("tpu", {"TPU"}),
    ],
)
def test_each_trait_belongs_to_the_listed_strategies(trait: str, names: set[str]) -> None:
    assert those(trait) == names


def test_roles_are_the_contracts_and_none_that_hangs() -> None:
    for traits in TRAITS.values():
        assert set(traits.cluster_roles) <= set(ROLES) - {"evaluator"}
        assert set(traits.dispensable_roles) <= set(traits.serving_roles) <= set(traits.cluster_roles)
        assert not (traits.collective and "ps" in traits.cluster_roles)


def test_the_evaluator_computes_alone() -> None:
    for strategy in TRAITS:
        assert Task("job", "ns", "uid", "evaluator", 0, strategy=strategy).traits is ALONE
        assert Task("job", "ns", "uid", "chief", 0, strategy=strategy).traits.name == strategy
