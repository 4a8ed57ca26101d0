"""The manifest's `tensorBoard`, as pydantic models."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from dtjob.api.pod_template import Block


class Profile(Block):
    """A profile of a few steps, as TensorBoard's profile plugin shows it."""

    first_step: Annotated[int, Field(ge=1)]
    """The first step to profile, counted from 1; those of a start are slower than the others."""
    steps: Annotated[int, Field(ge=1, le=1000)] = 5
    """How many steps to profile."""


class TensorBoard(Block):
    """What the chief writes for TensorBoard while it trains, to events/train below the checkpoint directory."""

    every_steps: Annotated[int, Field(ge=1)] = 100
    """Write loss, metrics, learning rate and speed each time this many steps were trained, and at each epoch's end."""
    profile: Profile | None = None
    """Profiles the chief for a few steps. Left out: no profile."""
