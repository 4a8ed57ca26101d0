# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.models.own_fit: an override of fit() runs, and trains by ours. The classes here stand for Keras's."""

from typing import Any

import pytest

from dtjob_trainer.errors import FitError
from dtjob_trainer.models.own_fit import given_to_evaluate, own_of, running, runs_own


class Trainer:
    def fit(self, *args: Any, **kwargs: Any) -> Any:
        return "keras", args, kwargs

    def evaluate(self, x: Any = None, y: Any = None, batch_size: int | None = None, **kwargs: Any) -> Any:
        return "keras", x, y, batch_size, kwargs


class Model(Trainer):
    pass


Trainer.__module__ = Model.__module__ = "keras.src.models.model"


class Own(Model):
    def fit(self, x: Any, *, factor: int = 1, **kwargs: Any) -> Any:
        return super().fit(x * factor, **kwargs)


class Heir(Own):
    pass


@runs_own
def fit(model: Any, x: Any = None, epochs: int = 1, validation_split: float = 0.0, *, save: Any = None) -> Any:
    return "ours", x, epochs, validation_split, save


def test_the_class_that_overrides_fit_is_found() -> None:
    assert [own_of(each, "fit") for each in (Model(), Own(), Heir(), 3)] == [None, Own, Own, None]
    assert own_of(Own(), "evaluate") is None


def test_an_overridden_fit_trains_with_dtjobs_fit() -> None:
    made: Any = fit
    assert made(Heir(), 2, factor=3, epochs=5, save="m.keras") == ("ours", 6, 5, 0.0, "m.keras")
    assert made(model=Own(), x=2) == ("ours", 2, 1, 0.0, None)
    assert made(Model(), 2) == ("ours", 2, 1, 0.0, None)


def test_none_means_the_default_as_in_keras() -> None:
    made: Any = fit
    assert made(Own(), 2, validation_split=None) == ("ours", 2, 1, 0.0, None)


def test_all_models_train_as_before_after_an_override() -> None:
    class Failing(Model):
        def fit(self, *args: Any, **kwargs: Any) -> Any:
            assert Model().fit(1) == ("keras", (1,), {})  # another model, meanwhile
            raise KeyError("its own")

    with pytest.raises(KeyError, match="its own"):
        fit(Failing(), 1)
    assert "fit" not in vars(Model)
    assert Own().fit(4) == ("keras", (4,), {})


def test_an_override_that_never_calls_super_is_refused() -> None:
    class Alone(Model):
        def fit(self, *args: Any, **kwargs: Any) -> Any:
            return "trained by itself"

    with pytest.raises(FitError, match=r"Alone\.fit\(\) does not call super\(\)\.fit\(\)"):
        fit(Alone(), 1)


class Evaluates(Model):
    def evaluate(self, x: Any, y: Any = None, **kwargs: Any) -> Any:
        return super().evaluate(x * 10, y, **kwargs)


@runs_own
def evaluate(model: Any, x: Any = None, y: Any = None, *, return_dict: bool = False) -> Any:
    return "ours", x, y, return_dict


def test_an_overridden_evaluate_evaluates_with_dtjobs_evaluate() -> None:
    made: Any = evaluate
    assert made(Evaluates(), 2, 3, return_dict=True) == ("ours", 20, 3, True)
    assert made(Model(), 2) == ("ours", 2, None, False)
    with running("evaluate"):  # by the program, which has called the model's method
        assert made(Evaluates(), 2) == ("ours", 2, None, False)


def test_a_validation_takes_what_the_override_gives_super() -> None:
    assert given_to_evaluate(Evaluates(), (2, 3), batch_size=4, steps=None) == (20, 3)
    assert given_to_evaluate(Evaluates(), 2) == (20,)
    assert given_to_evaluate(Model(), (2, 3), batch_size=4) == (2, 3)
    assert vars(Model).get("evaluate") is None
    assert Evaluates().evaluate(1)[1] == 10


def test_an_evaluate_that_never_calls_super_is_refused() -> None:
    class Alone(Model):
        def evaluate(self, *args: Any, **kwargs: Any) -> Any:
            return {"loss": 0.0}

    with pytest.raises(FitError, match=r"Alone\.evaluate\(\) does not call super\(\)\.evaluate\(\)"):
        given_to_evaluate(Alone(), (1, 2))
