"""Times as Kubernetes writes them: RFC 3339, UTC."""

from __future__ import annotations

from datetime import UTC, datetime


def parse(text: str) -> datetime:
    """The moment that an RFC 3339 string names; raises ValueError on anything else."""
    return datetime.fromisoformat(text)


def rfc3339(moment: datetime) -> str:
    """The moment in UTC to the second, such as `2026-11-21T10:00:00Z`."""
    return moment.astimezone(UTC).isoformat(timespec="seconds").removesuffix("+00:00") + "Z"
