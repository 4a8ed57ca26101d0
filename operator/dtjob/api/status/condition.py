# SPDX-License-Identifier: Apache-2.0
"""A condition, in the form and with the limits of metav1.Condition."""

import re
from typing import Annotated, Literal

from pydantic import Field

from dtjob.api.status.block import LONGEST_WORD, Int64, Message, StatusBlock, Time

REASON_PATTERN = r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"
"""As metav1.Condition has it."""
_REASON = re.compile(REASON_PATTERN, re.ASCII)
UNNAMED = "Unknown"
"""Stands where somebody gives a reason of another form."""


class Condition(StatusBlock):
    """One condition of the job."""

    type: Annotated[str, Field(max_length=316)]
    """The kind of condition, such as Running, Suspended, Complete or Failed."""
    status: Literal["True", "False", "Unknown"]
    """Whether the condition holds: True, False or Unknown."""
    reason: Annotated[str, Field(min_length=1, max_length=LONGEST_WORD, pattern=REASON_PATTERN)]
    """Why the condition has this status, in one CamelCase word for programs."""
    message: Message
    """Why the condition has this status, in words for people. It may be empty."""
    last_transition_time: Time
    """When status last changed."""
    observed_generation: Annotated[Int64, Field(ge=0)] | None = None
    """The metadata.generation of the job on which the condition is based."""

    @property
    def holds(self) -> bool:
        """Whether its status is True."""
        return self.status == "True"


Conditions = tuple[Condition, ...]


def valid_reason(reason: str) -> str:
    """The reason, if a condition may have it. Otherwise `Unknown`."""
    return reason if len(reason) <= LONGEST_WORD and _REASON.fullmatch(reason) else UNNAMED
