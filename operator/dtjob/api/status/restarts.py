# SPDX-License-Identifier: Apache-2.0
"""`status.restarts`, `incidents` and `lastFailure`: how often tasks were started again, and over what."""

from typing import Annotated

from pydantic import Field

from dtjob.api.status.block import Count, Int32, Int64, Message, Name, Sentence, StatusBlock, Time

MOST_INCIDENTS = 10
"""Incidents that a status holds."""


class Restarts(StatusBlock):
    """How often training was restarted."""

    total: Count = 0
    """The number of restarts of training, of any cause."""
    causes: Annotated[dict[str, Count], Field(max_length=64)] = {}
    """The number of restarts by cause, such as Disruption, OOMKilled or Error."""
    evaluator: Count = 0
    """The number of restarts of the evaluator. They do not interrupt training and are not part of total."""


class PastIncident(StatusBlock):
    """One interruption of training, with all failures that belong to it."""

    number: Count
    """The value of restarts.total after this restart. For the failure that ended the job, it is one more."""
    time: Time
    """When training was interrupted, as far as the operator knows."""
    task: Name
    """The task that failed first, such as worker-1."""
    reason: Name
    """The kind of failure, one of the words in restarts.causes."""
    message: Sentence = ""
    """What happened, in words that follow the name of the task."""
    from_step: Annotated[Int64, Field(ge=0)] | None = None
    """The last training step before the interruption. The field is absent if no step is known."""
    to_step: Annotated[Int64, Field(ge=0)] | None = None
    """The step from which training resumed. The field is absent if training has not resumed or reports no steps."""
    seconds_lost: Annotated[Int64, Field(ge=0)] | None = None
    """The time from the interruption until training had passed fromStep, or was interrupted again. The field is absent
    before that, and if the time is not known."""


class ProgramException(StatusBlock):
    """The Python exception that ended the program."""

    type: Name
    """The class of the exception, such as ModuleNotFoundError."""
    message: Message = ""
    """The line of the exception's message that says what is wrong."""
    location: Name = ""
    """The last line of the program's own files that the exception came through, such as train.py:12. The field is
    absent if that is not known."""


class LastFailure(StatusBlock):
    """The failure that caused the last restart, or the end of the job."""

    task: Name
    """The task that failed, such as worker-1."""
    pod: Name = ""
    """The name of the pod that failed."""
    node: Name = ""
    """The node on which the pod ran."""
    cause: Name = ""
    """The kind of failure, one of the words in restarts.causes."""
    message: Message = ""
    """What happened, in words."""
    exit_code: Int32 | None = None
    """The exit code of the training container. The field is absent if the container did not end."""
    exception: ProgramException | None = None
    """The Python exception that ended the program. The field is absent if there was none."""
    before_first_step: bool | None = None
    """Whether the pod failed before its first training step. The field is absent if that is not known."""
    log_tail: Message = ""
    """The last lines of the log."""
    rule: Message = ""
    """The rule of failurePolicy.rules that matched, and what it matched. The field is absent if no rule matched."""
    time: Time | None = None
    """When the container ended, by the clock of its node."""
