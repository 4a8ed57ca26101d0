"""The manifest's `failurePolicy`: what happens when tasks fail."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from dtjob.api.block import Block


class Backoff(Block):
    """The wait before a restart, which doubles with each restart that follows without a new checkpoint between."""

    initial_seconds: Annotated[int, Field(ge=0, le=3600)] = 10
    """Wait before the second restart in a row; the first one never waits."""
    max_seconds: Annotated[int, Field(ge=0, le=86400)] = 300
    """The longest wait."""


class FailurePolicy(Block):
    """What happens when tasks fail."""

    max_restarts: Annotated[int, Field(ge=0)] = 10
    """How many restarts in a row, without a newer checkpoint between them, are tried before the job fails. Evictions,
    drains and deleted pods are not counted."""
    backoff: Backoff = Backoff()
    """The wait before a restart."""
