# SPDX-License-Identifier: Apache-2.0
"""The manifest's `failurePolicy`: what happens when tasks fail."""

from typing import Annotated

from pydantic import Field

from dtjob.api.block import Block
from dtjob.api.spec.failure_rules import FailureRules


class Backoff(Block):
    """Wait before a restart. It doubles with each restart in a row. A newer checkpoint ends the row. So does a run of
    10 minutes, or of twice maxSeconds if that is longer."""

    initial_seconds: Annotated[int, Field(ge=0, le=3600)] = 10
    """Seconds before the second restart in a row; the first one never waits. Defaults to 10."""
    max_seconds: Annotated[int, Field(ge=0, le=86400)] = 300
    """Longest wait in seconds. Defaults to 300."""


class FailurePolicy(Block):
    """What happens when tasks fail."""

    max_restarts_without_progress: Annotated[int, Field(ge=0)] = 10
    """Restarts in a row, without a newer checkpoint between them, before the job fails. Failures that follow from one
    another are one restart. Disruptions, such as evictions and lost nodes, do not count. Defaults to 10."""
    max_restarts: Annotated[int, Field(ge=0)] | None = None
    """Restarts in the job's whole life, of those that maxRestartsWithoutProgress counts, before the job fails. No limit
    if left out."""
    max_disruptions_without_progress: Annotated[int, Field(ge=0)] = 100
    """Restarts in a row that maxRestartsWithoutProgress does not count, before the job fails. A newer checkpoint ends
    the row. So does a run of 10 minutes, or of twice backoff.maxSeconds if that is longer. Defaults to 100."""
    backoff: Backoff = Backoff.model_construct()
    """Wait before a restart. Pods that fail during the wait are part of the same restart."""
    stall_timeout_seconds: Annotated[int, Field(ge=10, le=604800)] | None = None
    """Seconds without a new step after which training has stalled. The slowest task is restarted, which
    maxRestartsWithoutProgress counts. Compiling, restoring, validating and saving are not stalls. Nothing is a stall if
    left out."""
    rules: FailureRules = Field(default_factory=list)
    """What happens on which failures. The first rule that matches decides, before the built-in ones; `dtjob explain`
    lists all. If tasks fail together, the rules judge the first cause."""
