# SPDX-License-Identifier: Apache-2.0
"""The arguments that `fit` has from Keras's `Model.fit`: what they mean, which are refused, which have no effect."""

import warnings
from collections.abc import Callable, Collection
from dataclasses import dataclass, fields, replace
from numbers import Integral
from typing import Any

from dtjob_trainer.errors import FitError

OPTIONAL = ("batch_size", "steps_per_epoch", "validation_steps", "validation_batch_size")
"""Numbers of which 0 means to Keras that they were not given."""


class LeftAside:
    """Arguments that were given and have no effect, for one line in the log."""

    def __init__(self, *, validated: bool = True) -> None:
        """`validated`: whether there is data to validate on."""
        self._validated = validated
        self._why: dict[str, str] = {}

    def add(self, argument: str, why: str) -> None:
        """Note that `argument` has no effect, and `why`."""
        self._why.setdefault(argument, why)

    def add_where_not_validated(self, argument: str) -> None:
        """Note that `argument`, of validation, has no effect, where there is no data for one."""
        if not self._validated:
            self.add(argument, "there is no validation_data")

    def tell(self, log: Callable[..., None]) -> None:
        """Name all of them, in one line."""
        told = "; ".join(f"{argument} ({why})" for argument, why in self._why.items())
        if told:
            log(f"without effect: {told}", level="warning")


@dataclass(frozen=True)
class Numbers:
    """The whole numbers of one call of `fit`."""

    batch_size: int | None
    epochs: int
    initial_epoch: int
    steps_per_epoch: int | None
    validation_steps: int | None
    validation_batch_size: int | None

    def read(self, package: str, aside: LeftAside) -> "Numbers":
        """The numbers as Keras reads them: 0 for "not given", and within `keras.config`'s limits for a short run.

        - package: the model's.

        Raises FitError for what are no such numbers.
        """
        found = {field.name: _whole(field.name, getattr(self, field.name)) for field in fields(self)}
        for name in ("initial_epoch", *OPTIONAL):
            value = found[name]
            if value is not None and value < 0:
                least = "must not be negative" if name == "initial_epoch" else "must be at least 1"
                raise FitError(f"{name}={value} {least}")
            if value == 0 and name in OPTIONAL:
                aside.add(f"{name}=0", "as if it were not given")
                found[name] = None
            elif value is not None and name.startswith("validation_"):
                aside.add_where_not_validated(name)
        read = Numbers(**found)  # type: ignore[arg-type]
        if read.initial_epoch >= read.epochs:
            aside.add(f"epochs={read.epochs}", f"training begins at epoch {read.initial_epoch}, so none is left")
        return read._limited() if package == "keras" else read

    def _limited(self) -> "Numbers":
        """Within the limits of `keras.config.set_max_epochs` and `set_max_steps_per_epoch`, as Keras's own `fit`."""
        import keras  # here, as all else needs none

        most_epochs, most_steps = keras.config.max_epochs(), keras.config.max_steps_per_epoch()
        limited = self
        if most_epochs and most_epochs < self.epochs:
            warnings.warn(f"Limiting epochs to {most_epochs}", stacklevel=4)
            limited = replace(limited, epochs=most_epochs)
        for name in ("steps_per_epoch", "validation_steps"):
            steps = getattr(self, name)
            if most_steps and (steps is None or most_steps < steps):
                warnings.warn(f"Limiting {name} to {most_steps}", stacklevel=4)
                limited = replace(limited, **{name: most_steps})
        return limited


@dataclass(frozen=True)
class Queue:
    """How tf_keras reads a Sequence."""

    max_queue_size: int = 10
    workers: int = 1
    use_multiprocessing: bool = False

    def check(self, package: str, reads: bool, aside: LeftAside) -> None:
        """Raise FitError for a model of Keras 3, which has no such arguments; note them where nothing `reads` so."""
        for field in fields(self):
            value = getattr(self, field.name)
            if value == field.default or reads:
                continue
            if package == "keras":
                raise FitError(
                    f"{field.name} is no argument of Keras 3's Model.fit; give it to the PyDataset itself, as in "
                    f"MyDataset(…, {field.name}={value}), whose __init__ calls super().__init__(**kwargs)"
                )
            aside.add(field.name, "only a tf_keras.utils.Sequence is read so")


def schedule(validation_freq: Any, aside: LeftAside) -> Callable[[int], bool]:
    """Whether there is a validation after an epoch (0-based), as Keras understands `validation_freq`.

    Raises FitError for what is neither a number of epochs nor the numbers (from 1) of some.
    """
    if validation_freq != 1:
        aside.add_where_not_validated("validation_freq")
    if isinstance(validation_freq, Integral):
        every = int(validation_freq)
        if every < 1:
            raise FitError(f"validation_freq={every} must be at least 1")
        return lambda epoch: (epoch + 1) % every == 0
    if isinstance(validation_freq, Collection) and not isinstance(validation_freq, str | bytes):
        chosen = frozenset(validation_freq)
        return lambda epoch: epoch + 1 in chosen
    raise FitError(
        f"validation_freq={validation_freq!r} must be a number of epochs, as 2 for every other one, or a list of the "
        "numbers of some, as [1, 5, 10]"
    )


def _whole(name: str, value: Any) -> int | None:
    if value is None and name in OPTIONAL:
        return None
    if not isinstance(value, Integral):
        rounded = f", as int({value!r})" if isinstance(value, float) else ""
        raise FitError(f"{name}={value!r} must be a whole number{rounded}")
    return int(value)
