# SPDX-License-Identifier: Apache-2.0
"""Times as Kubernetes writes them: RFC 3339, UTC; and durations as kubectl writes them."""

from datetime import UTC, datetime


def parse(text: str) -> datetime:
    """The moment that an RFC 3339 string names; raises ValueError on anything else."""
    return datetime.fromisoformat(text)


def rfc3339(moment: datetime) -> str:
    """The moment in UTC to the second, such as `2026-11-21T10:00:00Z`."""
    return moment.astimezone(UTC).isoformat(timespec="seconds").removesuffix("+00:00") + "Z"


def duration(seconds: float) -> str:
    """Seconds in the form of kubectl's ages: `45s`, `3m20s`, `2h5m`, `3d4h`."""
    left = max(0, round(seconds))
    parts = []
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts[:2]) or "0s"
