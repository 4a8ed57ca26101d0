# SPDX-License-Identifier: Apache-2.0
"""The manifest's `successPolicy`: whose exit 0 ends the job with success."""

from __future__ import annotations

from enum import StrEnum


class SuccessPolicy(StrEnum):
    """Whose exit 0 ends the job with success."""

    CHIEF = "Chief"
    ALL_WORKERS = "AllWorkers"
