"""The manifest's `runPolicy`: the life of the job as a whole."""

from __future__ import annotations

from enum import StrEnum

from dtjob.api.block import Block


class CleanPods(StrEnum):
    """Which pods are removed when the job has ended."""

    RUNNING = "Running"
    ALL = "All"
    NONE = "None"


class RunPolicy(Block):
    """The life of the job as a whole."""

    clean_pods: CleanPods = CleanPods.RUNNING
    """Which pods are removed when the job has ended: those still Running (such as parameter servers), All, or None. The
    evaluator first gets to what was saved last; it has an hour to come to work."""
