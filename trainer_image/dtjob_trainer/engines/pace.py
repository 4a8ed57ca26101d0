# SPDX-License-Identifier: Apache-2.0
"""How many steps to ask of a call that cannot look at the clock itself."""


class Pace:
    """As many steps as took `seconds` at the rate of the call before, at most twice as many as for that one.

    One that turns slow holds up for longer than `seconds` once.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.most = 1
        """Steps to ask of the next call."""

    def took(self, steps: int, seconds: float) -> None:
        """A call ran so many `steps` (at least one) in so many `seconds`."""
        fitting = self._seconds * steps / max(seconds, 1e-9)
        self.most = max(1, int(min(fitting, 2 * self.most)))
