# SPDX-License-Identifier: Apache-2.0
"""What a checkpoint holds beside variables. It is written and read through `RunState` alone.

To keep one more value that the loop sets, add a field to `FitState` or `TrainState`. A restore brings it back with the
others. A field of `RunState` must also be copied in `Run.restore` (loops/training_run.py). Give a new field a default:
older checkpoints lack it. An older trainer refuses a checkpoint that has it. Whoever changes what an existing field
means raises FORMAT.
"""

import types
from collections.abc import Mapping
from dataclasses import dataclass, field, is_dataclass
from typing import Any, Generic, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from dtjob_trainer.data.other_batches import Position
from dtjob_trainer.data.sharding import Eras
from dtjob_trainer.errors import CheckpointError

FORMAT = 1
"""Version of all that is below. A checkpoint of another one is refused."""


@dataclass
class Call:
    """A call of fit or train, as far as checkpoints tell it from others."""

    uid: str = ""
    """Of the job; empty where the program runs by hand."""
    tasks: dict[str, int] = field(default_factory=dict)
    """The number of tasks by role, and of replicas."""
    optimizers: list[dict[str, str]] = field(default_factory=list)
    """As `same_call.described` gives them."""


@dataclass
class CallbackState:
    """The state of one callback."""

    of: str
    """The name of its class."""
    state: Any


@dataclass
class FitState:
    """What `fit` keeps."""

    epoch_logs: dict[str, Any] | None = None
    """The logs of an epoch whose steps are done, while its validation is not."""
    history: dict[str, list[Any]] = field(default_factory=dict)
    """The lists of Keras's History by the names of metrics."""
    callbacks: list[CallbackState] = field(default_factory=list)


@dataclass
class TrainState:
    """What `train` keeps."""

    values: dict[str, float] = field(default_factory=dict)
    """What `step_fn` returned in the last step that was reported, summed over the replicas."""


Loop = TypeVar("Loop", FitState, TrainState)
NAMES = {"fit": FitState, "train": TrainState}


@dataclass
class RunState(Generic[Loop]):
    """The state of one run of `fit` or `train` after `step`."""

    loop: Loop
    step: int = 0
    """Steps that are done."""
    exact: bool = True
    """Whether a restart comes to the same bits, as far as is known."""
    stopped: bool = False
    """Whether a callback has stopped the training."""
    position: Position | None = None
    """Where in the data the run is. None: not yet known."""
    call: Call = field(default_factory=Call)
    groups: Eras = ()
    """How many tasks have shared the batches of the run: (first step, tasks), in order."""
    earlier: list[int] = field(default_factory=list)
    """Steps of the checkpoints before this one, for an evaluator that misses some of them."""
    kind: Literal["fit", "train"] = "fit"
    format: int = FORMAT

    def __post_init__(self) -> None:
        self.kind = "fit" if isinstance(self.loop, FitState) else "train"


def read_state(stored: Mapping[str, Any], loop: type[Loop], name: str, anew: str) -> RunState[Loop]:
    """The state of a run whose loop is a `loop`, from the JSON object of checkpoint `name`.

    - anew: what to do to train without this checkpoint, in words.

    Raises CheckpointError if the checkpoint has another format, or is of the other loop.
    """
    mend = f"{anew} to train from the beginning"
    if stored.get("format") != FORMAT:
        raise CheckpointError(
            f"{name} has format {stored.get('format')}, and this version of dtjob reads format {FORMAT} alone; use the "
            f"version that wrote the checkpoint, or {mend}"
        )
    if NAMES.get(stored.get("kind", "")) is not loop:
        wanted = next(each for each, its in NAMES.items() if its is loop)
        raise CheckpointError(
            f"{name} was written by dtjob_trainer.{stored.get('kind')}, and dtjob_trainer.{wanted} cannot go on from "
            f"there; make the same calls in the same order in every start, or {mend}"
        )
    try:
        return RunState(**{**_fields(RunState, stored), "loop": _value(loop, stored["loop"])})
    except (KeyError, TypeError) as error:
        raise CheckpointError(
            f"{name} has other values ({error}): another version of dtjob wrote it; use that version, or {mend}"
        ) from error


def _fields(of: type, stored: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of dataclass `of`. Raises KeyError for an unknown one."""
    hints = get_type_hints(of)
    return {name: _value(hints[name], value) for name, value in stored.items()}


def _value(hint: Any, value: Any) -> Any:
    """`value` as its type hint says, where JSON has no such type: a dataclass, a list of them, a tuple."""
    if get_origin(hint) in (Union, types.UnionType) and value is not None:
        return _value(get_args(hint)[0], value)
    if is_dataclass(hint) and isinstance(hint, type):
        return hint(**_fields(hint, value))
    if get_origin(hint) is list:
        return [_value(get_args(hint)[0], each) for each in value]
    if hint == Eras:
        return tuple((int(first), int(tasks)) for first, tasks in value)
    return value
