# SPDX-License-Identifier: Apache-2.0
"""The last lines of the other tasks, which their supervisors send to the chief task's: it keeps them with its own log.

Only the chief task and the evaluator mount the checkpoint storage for sure. Pods that are killed cannot send any more,
so the lines are sent while the pod lives.
"""

import json
import re
from http.client import HTTPConnection, HTTPException

from dtjob_trainer.contract.task import Task, host_of
from dtjob_trainer.rendezvous.messages import LARGEST

MOST_BYTES = 1 << 22
"""What is kept of all other pods together."""
LONGEST = 1 << 13
"""Bytes of a tail. In jobs of more than 256 tasks it is shorter."""
SEND_SECONDS = 5.0
"""A send gives up after so long."""
_TASK = re.compile(r"(chief|worker|ps)-\d{1,6}")


def tail_bytes(members: int) -> int:
    """How long the tail of a task is, in a group of so many: two pods of each task have room."""
    return min(LONGEST, MOST_BYTES // (2 * members))


def every_seconds(members: int) -> float:
    """How often a tail that has changed is sent: the chief task gets 50 a second at most."""
    return max(2.0, members / 50)


def send(task: Task, lines: bytes) -> None:
    """Send the newest lines of this pod to the chief task's supervisor. Raises OSError."""
    body = {"uid": task.uid, "task": task.id, "attempt": task.attempt, "lines": lines.decode(errors="replace")}
    connection = HTTPConnection(host_of(task.rendezvous), task.rendezvous_port, timeout=SEND_SECONDS)
    try:
        connection.request("POST", "/log", json.dumps(body))
        answer = connection.getresponse()
        if answer.status != 200:
            raise OSError(f"{task.rendezvous} answered {answer.status}")
    except HTTPException as error:
        raise OSError(f"{task.rendezvous}: {error}") from None
    finally:
        connection.close()


class Tails:
    """The last lines of each other pod of one job, in the order in which the pods were first heard.

    A stranger may name any task and attempt, so only two pods of each task are kept.
    """

    def __init__(self, uid: str, members: int) -> None:
        """`uid` is the job's, and `members` is the number of its tasks."""
        self._uid, self._most_pods = uid, 2 * members
        self._kept: dict[tuple[str, int], str] = {}

    def take(self, body: bytes) -> None:
        """Take what `send` sent, in place of what the pod had sent before. Raises ValueError if it is none."""
        told = json.loads(body)
        if not isinstance(told, dict) or told.get("uid") != self._uid:
            raise ValueError("this is not for this job")
        task, attempt, lines = (told.get(name) for name in ("task", "attempt", "lines"))
        if not (isinstance(task, str) and _TASK.fullmatch(task) and type(attempt) is int and 0 <= attempt <= LARGEST):
            raise ValueError("task must be such as worker-1, and attempt a number")
        if not isinstance(lines, str) or len(lines) > LONGEST:
            raise ValueError(f"lines must be a text of {LONGEST} characters at most")
        self._kept[task, attempt] = lines
        while len(self._kept) > self._most_pods or sum(map(len, self._kept.values())) > MOST_BYTES:
            del self._kept[next(filter(self._was_replaced, self._kept), next(iter(self._kept)))]

    def text(self) -> bytes:
        """All that is kept."""
        return "".join(self._kept.values()).encode(errors="replace")

    def _was_replaced(self, pod: tuple[str, int]) -> bool:
        return any(task == pod[0] and attempt > pod[1] for task, attempt in self._kept)
