"""The manifest's `runPolicy`: the life of the job as a whole."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from dtjob.api.block import Block

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
    ttl_seconds_after_finished: TimesToLive | None = None
    """When the job is deleted with all that belongs to it, by how it ended: {succeeded: 3600, failed: 604800}. Not
    before an evaluator has got to what was saved last. Left out: never."""
