# SPDX-License-Identifier: Apache-2.0
"""Backoff: how long to wait before something that failed is tried again."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Backoff:
    """Waits in seconds: `first`, then twice as long each time, and `longest` at most."""

    first: float
    longest: float

    def after(self, failures: int) -> float:
        """The wait after so many failures in a row, from 1 on."""
        return min(self.first * 2.0 ** min(failures - 1, 30), self.longest)
