# SPDX-License-Identifier: Apache-2.0
"""The manifest's `cleanPodPolicy`: which pods are deleted when the job has ended."""

from __future__ import annotations

from enum import StrEnum


class CleanPodPolicy(StrEnum):
    """Which pods are deleted when the job has ended."""

    RUNNING = "Running"
    ALL = "All"
    NONE = "None"
