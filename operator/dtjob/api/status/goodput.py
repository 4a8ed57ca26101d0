# SPDX-License-Identifier: Apache-2.0
"""`status.goodput`: what the time of a job has gone into since all of its tasks first ran.

Every second that is counted stands under exactly one of `seconds`; which one, `plan/lifetime/time_spent.py` decides.
"""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from dtjob.api.status.block import Int32, Seconds, StatusBlock, Sum


class Part(StrEnum):
    """What time goes into. KEPT is the goodput, UNKNOWN is known to be neither, and the others are what was lost."""

    KEPT = "kept"
    REDONE = "redone"
    SAVING = "saving"
    RESTARTING = "restarting"
    WAITING_FOR_PODS = "waitingForPods"
    STARTING = "starting"
    ENDING = "ending"
    UNKNOWN = "unknown"


class GoodputSeconds(StatusBlock):
    """Seconds by what they were spent on, decimal numbers as text. A part without time is absent."""

    kept: Seconds = 0.0
    """Training steps that were not lost, with the data loading, validation and callbacks between them."""
    redone: Seconds = 0.0
    """Training steps that a restart took back."""
    saving: Seconds = 0.0
    """Training stood still while a checkpoint was saved."""
    restarting: Seconds = 0.0
    """All tasks ran, but training had not resumed after a restart. The backoff before a restart counts too."""
    waiting_for_pods: Seconds = 0.0
    """A pod that training needs did not run."""
    starting: Seconds = 0.0
    """All tasks ran, but training had not begun: at the first start and after a suspension."""
    ending: Seconds = 0.0
    """Training was over, but the job had not ended."""
    unknown: Seconds = 0.0
    """The operator could not read the chief's status, or the chief did not report its time."""


class GoodputSteps(StatusBlock):
    """Training steps that the chief reported."""

    kept: Sum = 0
    """Steps that were not lost."""
    redone: Sum = 0
    """Steps that a restart took back."""


class GoodputStatus(StatusBlock):
    """How the job spent its time since all its tasks first ran, without suspensions. The values are as of the last
    write of the status. The field is absent if spec.program is not set."""

    percentage: Annotated[Int32, Field(ge=0, le=100)] | None = None
    """The percentage of the known time that went into training steps that were not lost."""
    seconds: GoodputSeconds = GoodputSeconds()
    """Seconds by what they were spent on, decimal numbers as text. A part without time is absent."""
    steps: GoodputSteps = GoodputSteps()
    """Training steps that the chief reported."""
