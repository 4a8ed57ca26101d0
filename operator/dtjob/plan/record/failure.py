# SPDX-License-Identifier: Apache-2.0
"""A failure: its task, its cause and its words, as `status.lastFailure` keeps it; and the enum of all causes.

`plan/failure/cause.py` finds the cause of a pod's end. A supervisor tells in the container's termination message how
the training process ended (contract.md). Its last log line there says so. If it was killed with the container
before a first step, the words that it had left for that case say so.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from dtjob.api.spec.failure_rules import RuleAction
from dtjob.api.status.block import LARGEST_WHOLE, whole
from dtjob.api.status.restarts import LastFailure, ProgramException
from dtjob.objects.topology import Task

LONGEST = 512
"""Characters of an exception that are taken."""

_PAIR = re.compile(r'([A-Za-z]+)=("(?:[^"\\]|\\.)*"|[^\s"]+)(?=\s|$)')
_OURS = re.compile(r'time=\S+ level=(error|info|warning) |\{"time": "[^"]*", "level": "')
"""How the trainer's lines begin, in logfmt and in JSON."""
_VARIES = (
    (re.compile(r"0x[0-9a-fA-F]+"), "#"),
    (re.compile(r"\btmp[a-z0-9_]{8}\b"), "tmp#"),
    (re.compile(r"\b[0-9a-fA-F]{8,}\b"), "#"),
    (re.compile(r"\d+"), "#"),
)
"""What of a line differs from one run of a program to the next: addresses, temporary files, ids, numbers and times."""
_LIST = re.compile(r"(?<=[\[{(])[^\[\]{}()]+(?=[\]})])")
"""What is in brackets. TensorFlow names the attributes of an operation in any order, Python what is in a set."""

_INFORMS = re.compile(r"I\d{4} \d\d:|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+: I ")
"""How TensorFlow's lines begin that only inform."""
_OF_PEERS = ("coordination", "collective", "heartbeat", "/job:", "grpc", "nccl")
"""Words of TensorFlow for the connections of a group."""


@dataclass(frozen=True)
class ProgramEnd:
    """How a training process ended that has failed."""

    stepped: bool | None = None
    """Whether its pod had done a training step; None: nobody knows."""
    step: int | None = None
    """The last step that its supervisor heard of, where one was done."""
    restored: int | None = None
    """The step that it went on from, where it told of one and had done none."""
    exception: str = ""
    """The exception's kind and last line, empty if none ended it."""
    location: str = ""
    """The last line of the program that the exception came through, such as train.py:12; empty if that is not known."""
    trained: bool = False
    """All training that the program had begun was done before the exception."""
    transient: bool = False
    """The exception is one of connections or of storage that is away, which may pass by itself."""
    exhausted: bool = False
    """The exception says that memory or storage is used up."""
    permanent: bool = False
    """The exception is one of the trainer's own that only another program or manifest corrects."""
    straggler: str = ""
    """Where training has stalled, the task that is behind; else empty."""
    behind: str = ""
    """How that is behind, in words."""
    said: str = ""
    """The log's last lines, as the termination message has them."""

    @classmethod
    def of(cls, message: str) -> "ProgramEnd":
        """What a termination message tells; nothing but itself where no supervisor has written into it."""
        if _killed_before_its_first_step(message):
            return cls(stepped=False)
        for line in reversed(message.splitlines()):
            if (facts := _facts(line)) is not None:
                said, step = facts.get("stepped"), _step(facts.get("step"))
                stepped = said if isinstance(said, bool) else None
                return cls(
                    stepped=stepped,
                    step=step if stepped else None,
                    restored=step if stepped is False else None,
                    exception=_one_line(facts.get("exception")),
                    location=_one_line(facts.get("location")),
                    trained=facts.get("trained") is True,
                    transient=facts.get("transient") is True,
                    exhausted=facts.get("exhausted") is True,
                    permanent=facts.get("permanent") is True,
                    straggler=_one_line(facts.get("straggler")),
                    behind=_one_line(facts.get("behind")),
                    said=message,
                )
        return cls(said=message)

    @property
    def alike(self) -> str:
        """The exception without what differs from one run to the next: two that are alike have the same."""
        return _without_what_varies(self.exception)

    @property
    def abort(self) -> str:
        """The last line that the program left before an abort, without what differs from one run to the next.

        Empty if there is none. Also empty if one of the last lines is about the connections of a group: TensorFlow may
        have aborted over a lost peer.
        """
        lines = [line.strip() for line in self.said.splitlines() if not _OURS.search(line)]
        lines = [line for line in lines if line and not _INFORMS.match(line)]
        if not lines or any(word in line.lower() for line in lines for word in _OF_PEERS):
            return ""
        return _without_what_varies(_one_line(lines[-1]))

    @property
    def log_tail(self) -> str:
        """The log's last lines as a user reads them."""
        lines = self.said.splitlines()
        return readable(line for line in lines if _facts(line) is None)

    @property
    def words(self) -> str:
        """The end in words: the last step and the exception, as far as the supervisor has told them."""
        when = "" if self.step is None else f" after step {self.step}"
        return f"failed{when}: {self.located}" if self.exception else f"failed{when}"

    @property
    def located(self) -> str:
        """The exception with the line of the program before it: `train.py:12: KeyError: 'label'`."""
        return f"{self.location}: {self.exception}" if self.location else self.exception

    def stalled_words(self, task_id: str) -> str:
        """The stall of this task in words: the last step, and how the straggler is behind."""
        when = "" if self.step is None else f" after step {self.step}"
        waiting = "" if self.straggler == task_id else f" waiting for {self.straggler}:"
        return f"stalled{when},{waiting} {self.behind or 'behind the others'}"


UNKNOWN = ProgramEnd()
"""Nothing is known."""


def _without_what_varies(text: str) -> str:
    for varies, instead in _VARIES:
        text = varies.sub(instead, text)
    return _LIST.sub(lambda found: ", ".join(sorted(found[0].split(", "))), text)


def _facts(line: str) -> Mapping[str, Any] | None:
    """The facts in a supervisor's last line, None if it is another line."""
    begins = _OURS.search(line)
    if begins is None:
        return None
    text = line[begins.start() :]
    facts: dict[str, Any] = {}
    if text.startswith("{"):
        try:
            facts, _ = json.JSONDecoder().raw_decode(text)
        except (ValueError, RecursionError):
            return None
        return facts if isinstance(facts.get("exitCode"), int) else None
    for name, value in _PAIR.findall(text):
        try:
            facts[name] = json.loads(value)
        except ValueError:
            facts[name] = value
    return facts if isinstance(facts.get("exitCode"), int) else None


def _killed_before_its_first_step(message: str) -> bool:
    if not message.startswith("{"):
        return False
    try:
        left = json.loads(message)
    except (ValueError, RecursionError):
        return False
    return isinstance(left, dict) and left.get("stepped") is False and "task" in left and "level" not in left


def _step(value: Any) -> int | None:
    """A step that a status can hold: whoever writes a termination message may write any number."""
    return value if type(value) is int and 0 <= value < LARGEST_WHOLE else None


def _one_line(value: Any) -> str:
    text = " ".join(value.split()) if isinstance(value, str) else ""
    return text.encode(errors="replace").decode()[:LONGEST]


class Cause(StrEnum):
    """Kinds of failure. The order is that of precedence inside one incident."""

    DISRUPTION = "Disruption"
    DELETED = "Deleted"
    NOT_STARTED = "NotStarted"
    OOM_KILLED = "OOMKilled"
    STORAGE_LIMIT_EXCEEDED = "StorageLimitExceeded"
    SIGNAL = "Signal"
    STALLED = "Stalled"
    ERROR = "Error"

    @property
    def charged(self) -> bool:
        """Whether it counts against failurePolicy.maxRestartsWithoutProgress: only what the job itself did."""
        return self not in (Cause.DISRUPTION, Cause.DELETED, Cause.NOT_STARTED)

    @property
    def precedence(self) -> int:
        """Lower wins: pod condition, then an exceeded limit, a signal or a stall, then other exit codes."""
        return list(Cause).index(self)

    @classmethod
    def known(cls, word: str) -> "Cause | None":
        """The cause of this name; None for any other word."""
        return next((cause for cause in cls if cause == word), None)


@dataclass(frozen=True)
class Failure:
    """One task's failure, as it goes to `status.lastFailure`."""

    task: Task
    cause: Cause
    time: datetime
    pod: str
    node: str
    message: str
    """What happened, in words that follow the task's name."""
    log_tail: str
    """The last lines of the log."""
    exit_code: int | None = None
    end: ProgramEnd = UNKNOWN
    """What the task's supervisor told of it."""
    rule: str = ""
    """The rule of failurePolicy.rules that decided about it and what it matched, in words; empty for none."""
    action: RuleAction = RuleAction.RESTART
    """What is to be done about it: of the rule, or of the built-in ones (`plan/failure/rules.py`: `ruled`)."""

    @property
    def charged(self) -> bool:
        """Whether it counts against maxRestartsWithoutProgress."""
        return self.action is RuleAction.RESTART

    @property
    def of_a_rule(self) -> RuleAction | None:
        """The action where one of the user's rules says so."""
        return self.action if self.rule else None

    def in_status(self) -> LastFailure:
        """The failure as the status has it; `exitCode` only where the container ended, `exception` and
        `beforeFirstStep` where its supervisor told of them."""
        kind, _, message = self.end.exception.partition(": ")
        return LastFailure(
            task=self.task.id,
            pod=self.pod,
            node=self.node,
            cause=self.cause.value,
            message=self.message,
            log_tail=self.log_tail,
            rule=self.rule,
            time=whole(self.time),
            exit_code=self.exit_code,
            exception=ProgramException(type=kind, message=message, location=self.end.location) if kind else None,
            before_first_step=None if self.end.stepped is None else not self.end.stepped,
        )

    def sentence(self) -> str:
        """The failure in words, for events and the status message."""
        return f"{self.task.id} {self.message}"

    def with_rule(self) -> str:
        """The failure in words, with the rule that decided what is done about it."""
        return "; ".join(filter(None, (self.sentence(), self.rule)))


_FRAME = re.compile(r'\s+File "([^"]+)", line \d+')
"""How a frame of a traceback begins."""
_PACKAGES = ("/site-packages/", "/dist-packages/", "/dtjob_trainer/", "<frozen ", "/lib/python3")
"""Parts of the paths of files that are not the program's."""


class Frames:
    """Tells frames of packages from other lines, one line of a log after the other."""

    def __init__(self) -> None:
        self._indent: int | None = None
        """How far the frame of a package is indented, within one. The more indented lines after its first are code."""

    def keeps(self, line: str) -> bool:
        """Whether the next line of the log is none of such a frame."""
        depth = len(line) - len(line.lstrip())
        if frame := _FRAME.match(line):
            self._indent = depth if any(part in frame[1] for part in _PACKAGES) else None
        elif self._indent is not None and line.strip() and depth <= self._indent:
            self._indent = None
        return self._indent is None


def readable(lines: Iterable[str]) -> str:
    """The lines without frames of packages."""
    return "\n".join(filter(Frames().keeps, lines)).strip()
