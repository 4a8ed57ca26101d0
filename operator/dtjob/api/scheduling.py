"""The manifest's `scheduling`: how the pods are placed."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from dtjob.api.block import Block


class Scheduling(Block):
    """How the pods are placed."""

    priority_class_name: Annotated[str, Field(min_length=1, max_length=253)] | None = None
    """PriorityClass of the pods."""
