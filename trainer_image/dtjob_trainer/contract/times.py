# SPDX-License-Identifier: Apache-2.0
"""Times as text: RFC 3339 in UTC."""

from datetime import UTC, datetime


def timestamp() -> str:
    """The present time, with milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def to_the_second(now: float) -> str:
    """`now`, in seconds since the epoch, without fractions."""
    return datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def seconds_of(time: object) -> float | None:
    """The seconds since the epoch of an RFC 3339 time. None for anything else."""
    if not isinstance(time, str):
        return None
    try:
        return datetime.fromisoformat(time).timestamp()
    except ValueError:
        return None
