# SPDX-License-Identifier: Apache-2.0
"""Phase: where a job stands, in one word. The words stand here once; `status.phase` and its conditions have them."""

from enum import StrEnum


class Phase(StrEnum):
    """The phases, in the order of a job's life."""

    PENDING = "Pending"
    RUNNING = "Running"
    RESTARTING = "Restarting"
    SUSPENDED = "Suspended"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


ENDED = (Phase.SUCCEEDED, Phase.FAILED)
"""The phases that no job leaves. A phase is a string: `status.get("phase") in ENDED` asks a plain one too."""
