# SPDX-License-Identifier: Apache-2.0
"""The /status of a task (contract.md): the supervisor's own facts and the reports of the training process."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dtjob_trainer.contract import exit_codes
from dtjob_trainer.contract.log_line import Facts
from dtjob_trainer.contract.task import Task
from dtjob_trainer.rendezvous.records import Crashes
from dtjob_trainer.supervisor import time_spent
from dtjob_trainer.supervisor.first_step import FirstStep
from dtjob_trainer.supervisor.stall import Stall
from dtjob_trainer.supervisor.time_spent import TimeSpent

OURS = frozenset({
    "task", "attempt", "pid", "incarnation", "jobUid", "trainingPid", "restartsInPlace", "lastRestart", "silent",
    "unreached", "crashes", "stepped", "spent", *time_spent.KEYS,
})  # fmt: skip
"""Keys that a training process cannot overwrite."""

MOMENTARY = (
    "doing", "stepsPerSecond", "examplesPerSecond", "inputWait", "etaSeconds", "message", "restoredStep", "writing",
    "exception", "weights",
)  # fmt: skip
"""Keys that are only true for the training process that reported them."""

LONGEST_LAST_WORDS = 4096
"""Bytes of a termination message that the kubelet keeps."""

LONGEST_EXCEPTION = 480
"""Characters. The kubelet keeps the last 2,048 bytes of a log, and the supervisor's line is the last one."""
LONGEST_LOCATION = 128
FLAGS = ("trained", "transient", "exhausted", "permanent")
"""What may be true of an exception."""


class TaskStatus:
    """The status of one task since the start of its supervisor."""

    def __init__(self, task: Task) -> None:
        self._ours: dict[str, Any] = {
            "task": task.id, "attempt": task.attempt, "pid": os.getpid(), "jobUid": task.uid, "restartsInPlace": 0,
        }  # fmt: skip
        self._reported: dict[str, Any] = {}
        self.state = "waiting"
        self.incarnation = 0
        self.message = ""
        """The supervisor's own message. It replaces the message of the training process."""
        self.silent: Callable[[], dict[str, int]] = dict
        """Tasks that do not answer while the group waits for them, with their attempts."""
        self.unreached: Callable[[], dict[str, str]] = dict
        """Tasks that could not be reached for some time, with the reason."""
        self.crashes: Callable[[], Crashes] = Crashes
        """Restarts because of crashes: at the chief task those of its group, elsewhere those of this task."""
        self.first_step = FirstStep(task)
        self._spent = TimeSpent()

    @property
    def step(self) -> int | None:
        """The last reported step, of this training process or one before it."""
        step = self._reported.get("step")
        return step if isinstance(step, int) else None

    @property
    def trained_from(self) -> int | None:
        """The step that this training process restored, if it trains and has done steps since. Otherwise None."""
        restored, step = self._reported.get("restoredStep"), self.step
        trained = self.state == "training" and isinstance(restored, int) and step is not None and step > restored
        return restored if trained else None

    @property
    def starting(self) -> bool:
        """Whether the training process waits for its go or starts TensorFlow."""
        return self.state in ("waiting", "starting")

    @property
    def saves(self) -> bool:
        """Whether the training process must not be killed now: it saves, before it ends or while it trains."""
        return self.state == "saving" or "writing" in self._reported

    def started(self, incarnation: int, training_pid: int) -> None:
        """A training process was started."""
        self.state, self.incarnation, self.message = "waiting", incarnation, ""
        self.first_step.process_started()
        self._spent.process_started()
        self._ours["trainingPid"] = training_pid
        for key in MOMENTARY:
            self._reported.pop(key, None)

    def ended(self, state: str) -> None:
        """The training process has ended. `state` is the new state of the task."""
        self.state = state
        self._ours.pop("trainingPid", None)

    def take_over_done(self, directory: str) -> bool:
        """Take the last status of this job from the DONE mark in its checkpoint directory. False if there is none."""
        last = last_of_done(directory, self._ours["jobUid"])
        if last is not None:
            self.merge(last)
            self.ended("finished")
        return last is not None

    def restarts(self, count: int, time: str, cause: str) -> None:
        """Note the last restart in place. Called again if its cause becomes known later."""
        self._ours |= {"restartsInPlace": count, "lastRestart": {"time": time, "cause": cause}}

    def merge(self, progress: dict[str, Any]) -> None:
        """Take over a report of the training process, key by key."""
        self.first_step.heard(progress)
        self._spent.heard(progress)
        for key, value in progress.items():
            if key == "state":
                self.state = str(value)
            elif value is None:
                self._reported.pop(key, None)
            elif key not in OURS:
                self._reported[key] = value

    def to_json(self) -> dict[str, Any]:
        """The body of GET /status."""
        crashes = self.crashes()
        at_times = {
            "silent": self.silent(),
            "unreached": self.unreached(),
            "crashes": crashes.to_json() if crashes.count else None,
            "spent": self._spent.to_json(),
            "message": self.message,
        }
        ours = {**self._ours, "state": self.state, "incarnation": self.incarnation, **self._stepped()}
        return {**ours, **self._reported, **{key: value for key, value in at_times.items() if value}}

    def of_failure(self, code: int, stall: Stall | None = None) -> Facts:
        """The facts in the last log line of a container that ends with `code`. `stall`: the stall that ended it."""
        facts: dict[str, str | int | bool] = {"exitCode": code, **self._stepped()}
        facts |= stall.facts if stall is not None and code == exit_codes.STALLED else {}
        told = self._reported.get("exception")
        if isinstance(told, dict):
            line = ": ".join(str(told[part]) for part in ("type", "message") if told.get(part))
            facts["exception"] = line[:LONGEST_EXCEPTION]
            facts |= {"location": str(told["location"])[:LONGEST_LOCATION]} if told.get("location") else {}
            facts |= {name: True for name in FLAGS if told.get(name) is True}
        return facts

    def _stepped(self) -> dict[str, bool]:
        return {} if self.first_step.done is None else {"stepped": self.first_step.done}


def leave_last_words(status: dict[str, Any], file: str) -> None:
    """Write `status` to `file`, where the kubelet reads it. The pod's status then has it, without a poll of /status.

    Does nothing if `file` is empty. Raises OSError if it cannot be written.
    """
    if not file:
        return
    text = json.dumps(status)
    for key in ("metrics", "evaluation", "message"):  # the kubelet would cut the text, and a part of it is not JSON
        if len(text) > LONGEST_LAST_WORDS:
            status = {name: value for name, value in status.items() if name != key}
            text = json.dumps(status)
    Path(file).write_text(text)


def last_of_done(directory: str, uid: str) -> dict[str, Any] | None:
    """The last status in the DONE mark of this job in the checkpoint directory. None if there is no such mark.

    Also None for URIs (gs://), because reading them needs TensorFlow: the training process looks there.
    """
    if "://" in directory or not uid:
        return None
    try:
        mark = json.loads((Path(directory) / "DONE").read_text())
    except (OSError, ValueError):
        return None
    return last_in(mark, uid)


def last_in(mark: Any, uid: str) -> dict[str, Any] | None:
    """The last status in a DONE mark, if it is one of this job."""
    if not isinstance(mark, dict) or mark.get("uid") != uid:
        return None
    last = mark.get("status")
    # These keys are about the process that wrote the mark, and none trains now.
    of_the_process = ("restoredStep", *time_spent.KEYS)
    return {key: value for key, value in last.items() if key not in of_the_process} if isinstance(last, dict) else {}
