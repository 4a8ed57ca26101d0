# SPDX-License-Identifier: Apache-2.0
"""Waits between tries while a cluster does not answer, and says so after a while."""

import math
import random
import time
from collections.abc import Callable

from dtjob.client.errors import ClientError, Unavailable

FIRST_SECONDS, LONGEST_SECONDS = 0.5, 15.0
"""Between two tries: doubled with each, up to the longest. A server that says Retry-After decides itself."""
LONGEST_RETRY_AFTER = 60.0
CALL_SECONDS = 10.0
"""How long one call is tried again that nobody waits for otherwise."""
SAY_SECONDS, SAY_AGAIN_SECONDS = 5.0, 60.0
"""After how long without an answer the user is told, and after how long again."""
AGAIN = "the cluster answers again"
"""What the user is told at the end."""


class Outage:
    """The time in which the cluster does not answer. All tries of one client share it, so that one of them tells."""

    def __init__(self, say: Callable[[str], object]) -> None:
        self.say = say
        self._since: float | None = None
        self._said: float | None = None

    def failed(self, error: ClientError) -> None:
        """Note a try in vain, and tell the user if the outage has lasted."""
        now = time.monotonic()
        if self._since is None:
            self._since = now
        if now - self._since >= (SAY_SECONDS if self._said is None else self._said - self._since + SAY_AGAIN_SECONDS):
            self._said = now
            self.say(f"waiting for the cluster, {now - self._since:.0f} s so far: {error}")

    def answered(self) -> None:
        """Note an answer, and tell the user if the outage was told."""
        if self._said is not None:
            self.say(AGAIN)
        self._since = self._said = None


class Patience:
    """The tries of one call or watch. `until`: the last moment for a try, of time.monotonic()."""

    def __init__(self, outage: Outage, until: float = math.inf, sleep: Callable[[float], object] = time.sleep) -> None:
        self._outage, self._until, self._sleep = outage, until, sleep
        self._tries = 0

    def wait(self, error: ClientError) -> bool:
        """Wait before the next try. False, without waiting, if the time for tries is over."""
        self._outage.failed(error)
        seconds = min(LONGEST_SECONDS, FIRST_SECONDS * 2**self._tries) * random.uniform(0.5, 1.0)
        if isinstance(error, Unavailable) and error.retry_after is not None:
            seconds = min(error.retry_after, LONGEST_RETRY_AFTER)
        self._tries = min(self._tries + 1, 10)
        left = self._until - time.monotonic()
        if left > 0:
            self._sleep(min(seconds, left))
        return left > 0

    def answered(self) -> None:
        """Note an answer: the next failure is a first one."""
        self._tries = 0
        self._outage.answered()
