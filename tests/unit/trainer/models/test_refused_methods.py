"""dtjob_trainer.models.refused_methods: which of Keras 3's methods are refused under which strategy."""

import pytest

from dtjob_trainer.contract.strategy import TRAITS
from dtjob_trainer.errors import ModelFitError
from dtjob_trainer.models import refused_methods

TRAINING = ("fit", "evaluate", "train_on_batch", "test_on_batch")


@pytest.mark.parametrize("name", TRAITS)
def test_methods_are_refused_where_keras_fails_and_left_alone_elsewhere(name: str) -> None:
    expected = {"MultiWorkerMirrored": TRAINING, "ParameterServer": (*TRAINING, "predict")}
    assert refused_methods.refused(TRAITS[name]) == expected.get(name, ())


def test_every_refused_method_says_what_to_use_instead() -> None:
    assert set(refused_methods.refused(TRAITS["ParameterServer"])) == set(refused_methods.INSTEAD)


def test_models_of_another_strategy_are_left_alone() -> None:
    class Model:
        distribute_strategy = "the job's"

        def fit(self) -> str:
            return "trained"

    refuse = refused_methods._refusal("fit", "under it", "it fails", Model.fit, "the job's")
    with pytest.raises(ModelFitError, match=r"Model\.fit cannot be used under it: it fails; train with"):
        refuse(Model())
    Model.distribute_strategy = "another"
    assert refuse(Model()) == "trained"
