# SPDX-License-Identifier: Apache-2.0
"""About how long things take on two quiet cores, for the forecast that a scenario prints before it begins."""

START_SECONDS = 15.0
"""An API server with what runs beside it."""
SIDE_SECONDS = 8.0
"""An operator's start and its warm-up."""
MANY_JOBS = {"dtjob": 140.0, "tfjob": 4.8, "tfjob-tuned": 110.0, "bare": 230.0}
"""Pods a second of jobs with 4 pods (2026-11-23, 60 to 250 of them; TFJob at its defaults: 100)."""
ONE_JOB = {"dtjob": 290.0, "tfjob": 9.9, "tfjob-tuned": 70.0, "bare": 340.0}
"""Pods a second of one job with 1,000."""
_CHANGES = 80.0
"""Pods a second that end or are removed."""


def made(pods: int, rates: dict[str, float], side: str) -> float:
    """Seconds to make so many pods, from the start of the operator."""
    return SIDE_SECONDS + pods / rates[side]


def changed(pods: int) -> float:
    """Seconds until so many pods have ended, or are gone."""
    return pods / _CHANGES


def filled(pods: int, side: str) -> float:
    """Seconds until so many pods of many jobs run, for which TFJob is tuned."""
    return made(pods, MANY_JOBS, "tfjob-tuned" if side == "tfjob" else side)
