# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.program.keras_methods: which of Keras 3's methods are refused under which strategy."""

import pytest

from dtjob_trainer.contract.strategy import TRAITS
from dtjob_trainer.errors import ModelFitError

keras_methods = pytest.importorskip("dtjob_trainer.program.keras_methods")

ON_BATCHES = ("train_on_batch", "test_on_batch")


@pytest.mark.parametrize("name", TRAITS)
def test_methods_are_refused_where_keras_fails_and_left_alone_elsewhere(name: str) -> None:
    expected = {"MultiWorkerMirrored": ON_BATCHES, "ParameterServer": ON_BATCHES}
    assert keras_methods.refused(TRAITS[name]) == expected.get(name, ())


def test_models_of_another_strategy_are_left_alone() -> None:
    class Model:
        distribute_strategy = "the job's"

        def train_on_batch(self) -> str:
            return "trained"

    refuse = keras_methods._refusal("train_on_batch", "under it", "the job's", Model.train_on_batch)
    with pytest.raises(ModelFitError, match=r"Model\.train_on_batch cannot be used under it: Keras 3 fails"):
        refuse(Model())
    Model.distribute_strategy = "another"
    assert refuse(Model()) == "trained"
