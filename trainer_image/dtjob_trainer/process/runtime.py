# SPDX-License-Identifier: Apache-2.0
"""What `fit` runs in: the task, strategy, progress and shutdown of this process. Made once, by run.py or by default."""

import contextlib
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import Any, NoReturn, ParamSpec, TypeVar

from dtjob_trainer.contract import exit_codes, log_line
from dtjob_trainer.contract.settings import Checkpoint
from dtjob_trainer.contract.strategy import Traits
from dtjob_trainer.contract.task import DEFAULT_GRACE_SECONDS, Task
from dtjob_trainer.errors import CutOffError, FitError, StrategyError
from dtjob_trainer.process import failure
from dtjob_trainer.process.peer_loss import is_peer_loss
from dtjob_trainer.process.progress import MOST_METRICS, Progress
from dtjob_trainer.process.pulse import Pulse
from dtjob_trainer.process.shutdown import Shutdown
from dtjob_trainer.strategies import ambient

P = ParamSpec("P")
R = TypeVar("R")

SEED = 0
"""The seed of Python, NumPy and TensorFlow in every task. It is set before the program starts."""
NAMES_SHOWN, NAME_SHOWN = 5, 64
NESTED = (
    "fit or train was called within a callback or a step of another call, whose checkpoints and signals are not made "
    "for two; train the second model after the first, or call its Model.fit in a job of one process, where that is "
    "Keras's own within a callback"
)
"""Said of a call within another one."""


@dataclass
class Runtime:
    """The surroundings of one training process."""

    task: Task | None = None
    """None if the program runs by hand: then there are the default strategy and no checkpoints."""
    progress: Progress = field(default_factory=Progress)
    shutdown: Shutdown = field(default_factory=lambda: Shutdown(DEFAULT_GRACE_SECONDS))
    trained: bool = False
    """Whether `fit` has run to its end. The mark DONE is written only then."""
    stage: int = 0
    """How often `fit` or `train` was called: the number of the present call, or of the last one."""
    training: bool = False
    """Whether a call of `fit` or `train` has begun and has not ended."""
    cut_off: int | None = None
    """The exit code after `fit` or `train` was left by a lost peer or a stop, until a later one has ended well."""
    shapes: Callable[[], str] = lambda: ""
    """Returns the shapes of the model and of its data, for an error about shapes."""
    joined_server: bool = False
    """Whether the program has called `tf.distribute.Server.join`, which never returns in a server."""
    make_strategy: Callable[[], None] | None = None
    """Makes the strategy of the job ambient. None: it is ambient already, or the program runs by hand."""
    begun_in: Path = Path()
    """The directory in which the program was started. Its working directory may be another."""
    owner: Any = None
    """The mark of this job in its checkpoint directory (checkpoint/owner.py): one for all calls of `fit`, so that no
    other job takes the directory between two of them. None: not the chief task, or no call yet."""
    bucket_log: Any = None
    """Copies the log of this container to a bucket (bucket_log.py). None: nothing is copied."""
    before_the_end: Callable[[], None] = lambda: None
    """Called before this process ends by a failure. It waits for what must not be cut off."""

    def __post_init__(self) -> None:
        self.pulse = Pulse(self.progress)
        """What the loops do, for a supervisor that watches for stalls."""
        self._said: set[str] = set()
        self.progress.on_left_out = self.say_left_out

    def say_left_out(self, names: Iterable[str]) -> None:
        """Log once for each metric that it is not reported: it is not a single number, or there are too many."""
        new = [name for name in names if name not in self._said]
        self._said.update(new)
        if new:
            shown = ", ".join(name[:NAME_SHOWN] for name in new[:NAMES_SHOWN])
            more = f" and {len(new) - NAMES_SHOWN} more" if len(new) > NAMES_SHOWN else ""
            self.warn(
                f"not reported, as a status holds single numbers and at most {MOST_METRICS} of them: {shown}{more}"
            )

    @property
    def began(self) -> bool:
        """Whether `fit` or `train` was called."""
        return self.stage > 0

    def begin_stage(self) -> None:
        """Note that a call of `fit` or `train` begins: a stage of the program, numbered in the program's order.

        Raises CutOffError if the one before was cut off and has checkpoints: it has not ended, so no other may follow.
        Raises FitError within a callback of another call.
        """
        if self.training:
            raise FitError(NESTED)
        if self.cut_off is not None and self.checkpoint is not None:
            raise CutOffError(
                "training was cut off by a lost task or a stop, and the program has called fit or train again; let "
                "SystemExit end the program, which then starts again and resumes"
            )
        self.stage, self.trained, self.training = self.stage + 1, False, True
        self.progress.begin_stage(self.stage)

    @property
    def checkpoint(self) -> Checkpoint | None:
        """The settings of the present stage's checkpoints; None where the job has none."""
        if self.task is None or self.task.checkpoint is None:
            return None
        return self.task.checkpoint.of_stage(max(self.stage, 1))

    @property
    def next_stage_has_begun(self) -> bool:
        """Whether a process of this job or an earlier one has begun the stage after the present one."""
        import tensorflow as tf

        assert self.task is not None
        assert self.task.checkpoint is not None
        return bool(tf.io.gfile.isdir(self.task.checkpoint.of_stage(max(self.stage, 1) + 1).directory))

    def leave(self, *, starts_again: bool) -> None:
        """Wait for what must not be cut off by the end of this process, and give up what it holds.

        `starts_again`: the next process of this task starts at once, and goes on with both.
        """
        self.before_the_end()
        if starts_again:
            return
        if self.bucket_log is not None:
            self.bucket_log.end()
        self.shutdown.release()

    def stop(self) -> NoReturn:
        """End the program after a stop that was asked for. Call it once all is saved. Raises SystemExit."""
        self.cut_off = self.shutdown.exit_code
        raise SystemExit(self.cut_off)

    @property
    def members(self) -> int:
        """How many tasks train together."""
        return len(self.task.members) if self.task is not None else 1

    def take_strategy(self) -> None:
        """Make the strategy of the job ambient, if it is not yet so (spec.program.integration: None)."""
        make, self.make_strategy = self.make_strategy, None
        if make is not None:
            make()

    @property
    def strategy(self) -> Any:
        """The ambient `tf.distribute.Strategy`."""
        import tensorflow as tf

        return tf.distribute.get_strategy()

    @property
    def is_chief(self) -> bool:
        """Whether this process writes: checkpoints, the model, logs."""
        return self.task is None or self.task.is_chief

    @property
    def is_evaluator(self) -> bool:
        """Whether this process evaluates checkpoints and does not train."""
        return self.task is not None and self.task.is_evaluator

    @property
    def traits(self) -> Traits:
        """The traits of the strategy of this process."""
        return ambient.traits_of(self.task)

    def warn(self, message: str) -> None:
        """Log something that the author of the program may not have meant."""
        self.log(message, level="warning")

    def log(
        self,
        message: str,
        *,
        level: log_line.Level = "info",
        step: int | None = None,
        values: Mapping[str, float] | None = None,
    ) -> None:
        """Print one line (log_line.py). Only the chief and the evaluator print, as every task runs the same program."""
        if self.is_chief or self.is_evaluator:
            task = self.task.id if self.task is not None else None
            step = step if step is None else step + self.progress.steps_before
            log_line.write(sys.stdout, message, level=level, task=task, step=step, values=values)


_current = Runtime()


def current() -> Runtime:
    """The runtime of this process."""
    return _current


def under_strategy() -> Runtime:
    """The runtime of this process, for what needs the strategy of the job: training, evaluation and prediction.

    Raises StrategyError if the program should have called `strategy()` before it made its model.
    """
    if _current.make_strategy is not None and _current.traits.distributed:
        raise StrategyError(
            "with spec.program.integration: None, call dtjob_trainer.strategy() at the top of the program: it makes "
            f"the strategy of the job ({_current.traits.name}), under which the model must be made"
        )
    _current.take_strategy()
    return _current


def enter(runtime: Runtime) -> None:
    """Make `runtime` the one that `fit` uses."""
    global _current
    _current = runtime


def may_be_cut_off(trains: Callable[P, R]) -> Callable[P, R]:
    """Wraps `fit` or `train`: notes if it is left because of a lost peer, and raises SystemExit then.

    Programs that catch an Exception, such as a search that tries the next values, would take it for one of their own.
    """

    @wraps(trains)
    def noting(*args: P.args, **kwargs: P.kwargs) -> R:
        here = current()
        outer = here.training
        try:
            returned = trains(*args, **kwargs)
        except BaseException as error:
            if not outer:
                here.shutdown.training_is_left()
            if is_peer_loss(error, here.members):
                here.cut_off = exit_codes.PEER_LOST
                with contextlib.suppress(OSError):  # a log that cannot be written is no other error
                    traceback.print_exception(error)
                here.log(f"training is left, because another task was lost: {failure.in_one_line(error)}")
                raise SystemExit(here.cut_off) from error
            raise
        finally:
            here.training = outer
        here.cut_off = None
        return returned

    return noting
