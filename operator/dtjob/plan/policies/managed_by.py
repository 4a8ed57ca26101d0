"""Managed by: a job that names another controller is that one's alone, as batch/v1 has it for a Job's managedBy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dtjob.api.job import CONTROLLER


def is_ours(spec: Mapping[str, Any]) -> bool:
    """Whether this operator runs the job with this `spec`, as plain JSON: also of one that it could not read."""
    return spec.get("managedBy") in (None, CONTROLLER)
