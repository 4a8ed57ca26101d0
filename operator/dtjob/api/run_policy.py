"""The manifest's `runPolicy`: the life of the job as a whole."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from dtjob.api.block import UNSET_IN_CLUSTER, Block

LONGEST_SECONDS = 2**31 - 1
"""As batch/v1 has it for ttlSecondsAfterFinished: 68 years."""


class CleanPods(StrEnum):
    """Which pods are removed when the job has ended."""

    RUNNING = "Running"
    ALL = "All"
    NONE = "None"


class TimesToLive(Block):
    """How long a job stays after its end, by how it ended."""

    succeeded: Annotated[int, Field(ge=0, le=LONGEST_SECONDS)] | None = None
    """Seconds after which a job that has succeeded is deleted. Left out: it stays."""
    failed: Annotated[int, Field(ge=0, le=LONGEST_SECONDS)] | None = None
    """Seconds after which a job that has failed is deleted. Left out: it stays."""


class Elasticity(Block):
    """When an elastic job changes the number of its workers by itself. It never writes replicas.worker.count: that is
    yours, or your HPA's."""

    schedule_deadline_seconds: Annotated[int, Field(ge=1, le=LONGEST_SECONDS, json_schema_extra=UNSET_IN_CLUSTER)] = 300
    """Seconds for which training may wait for workers that no node has room for (Unschedulable), or a quota refuses,
    before it goes on with those that there is room for, at least replicas.worker.min. 300 where left out."""
    grow_period_seconds: Annotated[int, Field(ge=1, le=LONGEST_SECONDS, json_schema_extra=UNSET_IN_CLUSTER)] = 600
    """Seconds after which it may grow towards replicas.worker.count again: from then on a placeholder pod waits for the
    room of each worker that is missing, and training restarts with more workers when some have it. 600 where left
    out."""


class RunPolicy(Block):
    """The life of the job as a whole."""

    clean_pods: CleanPods = CleanPods.RUNNING
    """Which pods are removed when the job has ended: those still Running (such as parameter servers), All, or None. The
    evaluator first gets to what was saved last; it has an hour to come to work."""
    active_deadline_seconds: Annotated[int, Field(ge=1, le=LONGEST_SECONDS)] | None = None
    """Seconds that the job may be active before it fails (DeadlineExceeded), as in a Job: waiting for pods counts.
    Suspension does not count, and no restart begins the time anew. Left out: any time."""
    start_deadline_seconds: Annotated[int, Field(ge=1, le=LONGEST_SECONDS)] | None = None
    """Seconds within which all tasks that train must run, or the job fails (StartDeadlineExceeded) and says what it
    waited for. Anew after each suspension; restarts of a job that ran do not count. Left out: it waits."""
    elasticity: Elasticity | None = None
    """When it changes the number of its workers by itself (with replicas.worker.min). Left out: as with {}."""
    ttl_seconds_after_finished: TimesToLive | None = None
    """When the job is deleted with all that belongs to it, by how it ended: {succeeded: 3600, failed: 604800}. Not
    before an evaluator has got to what was saved last. Left out: never."""
