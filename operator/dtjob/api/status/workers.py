# SPDX-License-Identifier: Apache-2.0
"""`status.workers`: how many workers a job is to have, and how many train together; and `status.replicaStatuses`: the
tasks of each role by state."""

from typing import Annotated

from pydantic import Field

from dtjob.api.spec.replica_specs import MAX_REPLICAS
from dtjob.api.status.block import Int32, Message, Name, StatusBlock, Time, Word

Size = Annotated[Int32, Field(ge=0, le=MAX_REPLICAS)]
"""A number of workers. The operator holds each of them in memory."""

SCALED = "Scaled"
"""The reason of a change of the number of workers that the spec asks for."""


class Resizing(StatusBlock):
    """A change of the number of workers that is under way: all tasks save and end, and a new group starts."""

    to: Size
    """The number of workers of the next group."""
    reason: Word
    """Why the number changes, in one word."""
    message: Message
    """Why the number changes, in words."""


class Workers(StatusBlock):
    """How many workers the job is to have, and how many train together. The field is absent if the job has no
    workers."""

    desired: Size
    """The number of workers in the spec, as last seen."""
    replicas: Size
    """The number of workers in the current group. The scale subresource shows it."""
    selector: Name = ""
    """The label selector of the worker pods. A HorizontalPodAutoscaler reads it."""
    reason: Word = ""
    """Why an elastic job has this number: AsDesired, NoRoom, Finishing, Scaled, Unschedulable or Room."""
    message: Message = ""
    """Why an elastic job has this number, in words."""
    last_scale_time: Time | None = None
    """When the current group started. The field is absent if the number of workers has never changed."""
    resizing: Resizing | None = None
    """The change that is under way. The field is absent if there is none."""
    unschedulable_since: Time | None = None
    """Since when training waits for tasks that no node or quota has room for. The field is absent if none waits."""
    adjusted_time: Time | None = None
    """When the operator last changed the number, or tried to, because of missing room."""

    @property
    def short(self) -> int:
        """How many workers the group has too few."""
        return max(0, self.desired - self.replicas)


class ReplicaStatus(StatusBlock):
    """The tasks of one role. A count that is 0 is absent."""

    replicas: Int32 = 0
    """The number of tasks of this role."""
    active: Int32 = 0
    """The number of tasks that run."""
    pending: Int32 = 0
    """The number of tasks whose pod exists but does not run yet."""
    succeeded: Int32 = 0
    """The number of tasks that finished."""
    failed: Int32 = 0
    """The number of tasks that failed or were lost with their node."""
