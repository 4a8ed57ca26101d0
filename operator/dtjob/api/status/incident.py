# SPDX-License-Identifier: Apache-2.0
"""`status.internal.incident`: the latest incident, and what came before it. A restarted operator knows it from here.

An incident begins with a failure. It ends when training has resumed and saved a newer checkpoint, or when all tasks
have run for a while. Failures of survivors until then are part of it.
"""

from dtjob.api.status.attempts import Attempts
from dtjob.api.status.block import Int32, Int64, StatusBlock, Time


class Errors(StatusBlock):
    """Charged incidents soon after each other, all of which the loss of one peer would explain."""

    began: Time
    """When the first of them began."""
    count: Int32
    """How many they are."""
    attempts: Attempts
    """The attempt that each task was at when the first of them began."""


class Mistake(StatusBlock):
    """What a program failed with before its job's first step, as far as a second failure alike has the same."""

    exit_code: Int32 = 0
    """The exit code."""
    exception: str = ""
    """The exception without numbers and the like. Of an abort in a job of several tasks, the last line of the log."""


class Incident(StatusBlock):
    """The latest incident, which is a failure with those that follow from it, and what came before it."""

    started_at: Time
    """When its first failure was seen."""
    cause: str
    """The kind of its first failure: a `Cause`, or a word that this version does not know."""
    not_before: Time
    """No pod is created before this moment."""
    charged: Int32 = 0
    """Charged incidents since the last newer checkpoint."""
    counted: Int32 = 0
    """Charged incidents in the job's whole life. failurePolicy.maxRestarts limits them."""
    uncharged: Int32 = 0
    """Incidents that were not charged, since the last newer checkpoint or long run."""
    in_a_row: Int32 = 0
    """Incidents of any kind, since the last newer checkpoint or long run."""
    checkpoint_step: Int64 = -1
    """The newest checkpoint when the budget was last refilled."""
    attempts: Attempts = Attempts()
    """The attempt that each task was at when it began."""
    ends_at: Time | None = None
    """From when on failures belong to the next incident. None: training has not resumed."""
    action: str | None = None
    """What a rule of failurePolicy.rules said to do about it; None if none did."""
    errors: Errors | None = None
    """The row of errors that it ends, None if its cause is another or has no peer to blame."""
    mistake: Mistake | None = None
    """What may be the program's own fault, where it failed before the job's first step."""
