# SPDX-License-Identifier: Apache-2.0
"""Which package a model is of."""

from typing import Any

from dtjob_trainer.contract.strategy import Traits
from dtjob_trainer.models.compiled import TrainedModel
from dtjob_trainer.models.keras3_model import KerasModel


def of(model: Any, traits: Traits, scaled_step: bool | None = None) -> TrainedModel:
    """`model` as the loop uses it under a strategy like that. Raises FitError for what is a model of neither package.

    `scaled_step`: as `fit` takes it. tf_keras is imported only where the program has made a model of it.
    """
    if any(base.__module__.startswith("tf_keras.") for base in type(model).__mro__):
        from dtjob_trainer.models.tf_keras_model import LegacyModel

        return LegacyModel(model, traits, scaled_step)
    return KerasModel(model, traits, scaled_step)
