"""The manifest's `failurePolicy`: what happens when tasks fail."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from dtjob.api.block import UNSET_IN_CLUSTER, Block
from dtjob.api.failure_rules import FailureRules


class Backoff(Block):
    """The wait before a restart, which doubles with each restart in a row, whatever its cause. A newer checkpoint ends
    the row, and so does a run of 10 minutes, or of twice maxSeconds where that is longer, after the last restart."""

    initial_seconds: Annotated[int, Field(ge=0, le=3600)] = 10
    """Wait before the second restart in a row; the first one never waits."""
    max_seconds: Annotated[int, Field(ge=0, le=86400)] = 300
    """The longest wait."""


class FailurePolicy(Block):
    """What happens when tasks fail."""

    max_restarts: Annotated[int, Field(ge=0)] = 10
    """How many restarts in a row, without a newer checkpoint between them, are tried before the job fails. Not counted
    are evictions, drains, lost nodes, deleted pods and pods that a node refused; counted is an eviction for more local
    storage than the pod's own limits allow. rules may say otherwise. A program that a signal such as SIGSEGV ends after
    new steps starts again in its pod, which is not counted; with 0, the pod ends."""
    max_disruptions: Annotated[int, Field(ge=0, json_schema_extra=UNSET_IN_CLUSTER)] = 100
    """How many restarts in a row that maxRestarts does not count are tried before the job fails: without a newer
    checkpoint between them, nor a run of 10 minutes, or of twice backoff.maxSeconds where that is longer. 100 where
    left out."""
    backoff: Backoff = Backoff()
    """The wait before a restart."""
    stall_timeout_seconds: Annotated[int, Field(ge=10, le=604800)] | None = None
    """After how long without a new step training has stalled: the task that is behind is named, writes to its log where
    its threads are, and is restarted, which maxRestarts counts; its group goes on at the last checkpoint. A process has
    it from its first step on; compiling, restoring, validating and saving are no stalls. A change holds for pods that
    are made after it. Left out: nothing is a stall."""
    rules: FailureRules = Field(default_factory=list)
    """What is done about which failures; the first rule that matches decides, and before the built-in ones (`dtjob
    explain` shows all that hold). Of failures that come together, that of the first cause is asked about; FailJob wins
    for any that does not come of another."""
