"""What all tiers share: each test is marked with its tier, and a run that skipped says so at its end."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

TIERS = ("unit", "cluster", "trainer", "e2e")


def tier_of(path: Path) -> str | None:
    """The tier whose directory holds this test file."""
    return next((part for part in reversed(path.parts) if part in TIERS), None)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if tier := tier_of(item.path):
            item.add_marker(tier)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """One line for each tier and reason: how many of its tests did not run, and why."""
    skipped: Counter[tuple[str, str]] = Counter()
    for report in terminalreporter.getreports("skipped"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        skipped[tier_of(Path(report.nodeid.split("::")[0])) or "other", reason.removeprefix("Skipped: ")] += 1
    if skipped:
        terminalreporter.section("not everything was tested")
        for (tier, reason), count in sorted(skipped.items()):
            terminalreporter.write_line(f"tier {tier}: {count} skipped: {reason}")
