# SPDX-License-Identifier: Apache-2.0
"""Which batches make an epoch: how steps, epochs and passes over the data stand to each other, as Keras has it."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from dtjob_trainer.data import other_batches
from dtjob_trainer.data.batches import Batch, Source
from dtjob_trainer.data.other_batches import Position
from dtjob_trainer.data.sharding import Eras, eras_of_pass
from dtjob_trainer.data.stream import Portion
from dtjob_trainer.errors import DataError
from dtjob_trainer.passes.lookahead import Pass

if TYPE_CHECKING:  # its module imports TensorFlow, and nothing here needs that
    from dtjob_trainer.strategies.collective import Group

WhenOut = Literal["end the epoch", "go on", "stop"]
"""What to do where a pass ends within an epoch of a given number of steps: end that epoch early and begin a new pass
with the next (Keras 3), begin a new pass at once (tf_keras with arrays), or train no further (tf_keras else)."""

OWN_SHARES = (
    "the number of tasks has changed within an epoch, and the data function shares its examples out by itself: some "
    "may be trained on twice in this epoch, others not at all; take them from context.shuffled(n) or "
    "context.files(counts)"
)
ENDED = "data: it has ended before total_steps; give a smaller total_steps, or repeat it"


class Epochs:
    """Hands out the batches of one epoch after the other, and knows where in the data training is.

    A pass begins where an epoch does; it may span several epochs where these have a number of steps of their own.
    """

    def __init__(
        self,
        source: Source,
        group: "Group",
        *,
        steps: int | None,
        epochs: int,
        when_out: WhenOut,
        tell: Callable[[str], None],
        first: int = 0,
        endless: bool = False,
    ) -> None:
        """`steps` of an epoch; None: a pass makes one. `tell` is given warnings.

        - endless: a pass of unknown length has no end.

        `epochs` and `first` are the numbers of the epoch (from 0) after the last and of the first one.
        """
        self.source, self.epochs, self.steps = source, epochs, steps
        self._group, self._tell = group, tell
        self._when_out: WhenOut = "stop" if source.once else when_out
        self._first, self._endless = first, endless
        self.ended = first
        """Epochs that have ended, those before the first included."""
        self.began = 0
        """The step at which the present epoch began."""
        self._out = False  # no data is left for another epoch
        self._length = source.steps  # steps of a pass, once one of them has shown it
        self._passes, self._pass_began = 0, 0
        self._pass: Pass | None = None
        self.history: Eras = ()
        """How many tasks have shared the batches of the run so far."""
        self.streams = False
        """Whether steps take the batches out of a `Stream`; known once there is an engine."""
        self._warned = False

    @property
    def go_on(self) -> bool:
        """Whether there is another epoch to train."""
        return self.ended < self.epochs and not self._out

    @property
    def numbers(self) -> range:
        """The numbers of the epochs that have ended."""
        return range(self._first, self.ended)

    @property
    def steps_per_epoch(self) -> int | None:
        """Steps of an epoch that is not cut short, where that is known."""
        return self.steps if self.steps is not None else self._length

    def total(self, step: int) -> int | None:
        """Steps of the whole run, as far as is known after `step`; None: unknown."""
        if not self.go_on:
            return step
        if self.steps is not None and self._when_out == "go on":
            return self.began + (self.epochs - self.ended) * self.steps
        # -1 where the pass ended with the present epoch's steps, whose validation is not done
        spanned = max(-1, (self.began - self._pass_began) // (self.steps or self._length or 1))
        left = self.epochs - self.ended + spanned
        return self._pass_began + total if (total := self._steps_of(left)) is not None else None

    def take(self, step: int, most: int) -> list[Batch] | Portion:
        """Up to `most` next batches of the epoch, of which `step` steps of the run are done; none where it has ended.

        Collective. Raises DataError where the data has no batches at all.
        """
        left = most if self.steps is None else min(most, self.began + self.steps - step)
        if left <= 0 or (found := self._current(step).take(left)):
            return found if left > 0 else []
        if step == self._pass_began:
            raise DataError(ENDED if self._endless else "x: it has no batches; give it examples")
        self._length, self._passes, self._pass_began, self._pass = step - self._pass_began, self._passes + 1, step, None
        if self.steps is None:
            return []
        if step == self.began or self._when_out == "go on":  # it ended with the last epoch
            return self.take(step, most)
        self._warn(step)
        return []

    def ends(self, step: int) -> bool:
        """Whether the epoch has no steps after `step`. Collective."""
        if self.steps is not None and (step >= self.began + self.steps or self._when_out == "go on"):
            return step >= self.began + self.steps
        return not self._current(step).more()

    def end(self, step: int) -> None:
        """All of the epoch is done, after `step`. Collective."""
        self.ended, self.began = self.ended + 1, step
        if self._when_out == "stop" and self.ended < self.epochs:
            self._out = self._passes > 0 or not self._current(step).more()
            if self._out:
                self._warn(step)

    def position(self, step: int) -> Position:
        """Where in the data the run is after `step`, for a checkpoint."""
        over = self._pass is not None and self._pass.over
        return Position(
            began=self.began,
            passes=self._passes + over,
            pass_began=step if over else self._pass_began,
            length=step - self._pass_began if over else self._length,
            steps=self.steps,
            batch=self.source.batch,
            cut_by_batch=self.source.cut_by_batch,
            first=self._first,
            ended=self.ended,
            out=self._out,
        )

    def same(self, kept: Position) -> bool:
        """Whether epochs are what they were where a checkpoint was written at this position."""
        return kept.steps == self.steps and not other_batches.differ(kept, self.source)

    def take_up(self, kept: Position, step: int, *, steps_done: bool = False) -> None:
        """Go on in the epoch that ran after `step`, where `position` gave `kept`.

        - steps_done: all steps of that epoch are done, and its validation is not.
        """
        self._first = kept.first  # of the run, whatever this process was asked for
        self.ended, self.began, self._out = kept.ended, kept.began, kept.out
        self._passes, self._pass_began = kept.passes, kept.pass_began
        self._length = kept.length if self.source.steps is None else self.source.steps
        if not self.same(kept):
            self._find_place(kept, step, steps_done=steps_done)

    def _find_place(self, kept: Position, step: int, *, steps_done: bool) -> None:
        """Find the place in other batches, or for epochs of other lengths, after `step`."""
        self._out, at = False, step - self._pass_began
        if self._when_out == "stop" and self._passes and not self.source.once:
            self._passes, at = 0, kept.length or 0  # its only pass may be longer now
        there = other_batches.converted(at, kept, self.source)
        if there is None and self._endless and self.source.steps is None and kept.batch and self.source.batch:
            there = at * kept.batch // self.source.batch  # a pass without an end cannot begin anew
        self._pass_began = other_batches.pass_began(step, there, self.source)
        if self.source.steps is None and other_batches.differ(kept, self.source):
            self._length = None  # it counts the batches of before
        if not steps_done:
            done = other_batches.converted(step - self.began, kept, self.source) or 0
            self.began = self._pass_began if self.steps is None else step - min(done, self.steps)
        if other_batches.differ(kept, self.source) and self.go_on:
            self._tell(other_batches.told(kept, self.source, self.ended, there))

    def _current(self, step: int) -> Pass:
        if self._pass is None:
            number = self._first + self._passes  # a later part of a longer training has orders of its own
            first, eras = step - self._pass_began, eras_of_pass(self.history, self._pass_began)
            self.source.shared(eras)
            if first and self.source.own_shares and len({tasks for _, tasks in eras}) > 1:
                self._tell(OWN_SHARES)
            agree = self.source.steps is None and not self._endless
            self._pass = Pass(self.source, number, first, self._group, self._tell, streams=self.streams, agree=agree)
        return self._pass

    def _steps_of(self, epochs: int) -> int | None:
        """Steps of so many epochs that begin with a pass, None where that is unknown."""
        length = self._length
        if self.steps is None:
            return None if length is None else epochs * length
        if length is None:
            return epochs * self.steps
        if self._when_out == "stop":
            return min(epochs * self.steps, length)
        passes, more = divmod(epochs, -(-length // self.steps))
        return passes * length + min(more * self.steps, length)

    def _warn(self, step: int) -> None:
        """Say, once, that the data has ended before its time."""
        if self._warned:
            return
        self._warned = True
        then = "training ends" if self._when_out == "stop" else "each such epoch ends there, and the next begins anew"
        wanted = f"steps_per_epoch={self.steps} and " if self.steps is not None else ""
        self._tell(
            f"the data ran out after {step} steps, but {wanted}epochs={self.epochs} ask for more: {then}; give "
            "steps_per_epoch * epochs batches or more, as with repeat()"
        )
