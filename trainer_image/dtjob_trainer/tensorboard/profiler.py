# SPDX-License-Identifier: Apache-2.0
"""A profile of a few steps, as `spec.tensorBoard.profile` asks for one."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from dtjob_trainer.contract.settings import ProfiledSteps


class Profiler:
    """Profiles this task from before its first asked step until after its last one, once in the life of a process."""

    def __init__(self, asked: ProfiledSteps | None, directory: str, warn: Callable[[str], None]) -> None:
        """The profile goes to `directory`/plugins/profile/TIME, a path or gs://; `warn` is told where there is none."""
        self._asked, self._directory, self._warn = asked, directory, warn
        self._running = False
        self._mark: Any = None
        """The step that runs, as the profile plugin finds it: its times are between these marks."""

    def before(self, done: int, count: int) -> None:
        """Call before `count` steps that run in one call, with `done` of the run behind them."""
        if self._asked is None:
            return
        if not self._running and self._asked.begins(done, count):
            self._start()
        if self._running:
            self._mark = tf.profiler.experimental.Trace("train", step_num=done + 1, _r=1)
            self._mark.__enter__()

    def _start(self) -> None:
        try:
            tf.profiler.experimental.start(self._directory)
            self._running = True
        except tf.errors.OpError as error:
            own = isinstance(error, tf.errors.AlreadyExistsError)  # by a callback of the program's
            self._say_that_there_is_none("the program itself profiles" if own else error)
            self._asked = None

    def after(self, done: int, wait: Callable[[], object]) -> None:
        """Call when `done` steps were started; ends the profile once `wait` says that they are done."""
        self._end_mark()
        if self._running and self._asked is not None and done >= self._asked.last_step:
            wait()
            self.stop()

    def stop(self) -> None:
        """End a profile that is running, and write it."""
        self._end_mark()
        if self._running:
            self._running, self._asked = False, None
            try:
                tf.profiler.experimental.stop()
            except (tf.errors.OpError, OSError) as error:  # nowhere to write it
                self._say_that_there_is_none(error)

    def _end_mark(self) -> None:
        if self._mark is not None:
            self._mark.__exit__(None, None, None)
            self._mark = None

    def _say_that_there_is_none(self, error: Exception | str) -> None:
        self._warn(f"no profile of tensorBoard.profile: {error}")
