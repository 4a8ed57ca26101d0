# SPDX-License-Identifier: Apache-2.0
"""What tiers share: each test is marked with its tier, a namespace, and the end of a run says what it left out."""

import gc
import re
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path

import pytest

from tests import gpus
from tools.cluster.rest import Api

LEFT_OUT = pytest.StashKey[Counter[str]]()
"""How many tests of each tier this run has left out as slow."""
TIERS = ("unit", "cluster", "trainer", "e2e")
SLOW = {
    "cluster": "`make cluster-slow` runs them",
    "trainer": "`make trainer-slow` and `make chaos` run them",
    "e2e": "`make e2e-slow` runs them",
}


def tier_of(path: Path) -> str | None:
    """The tier whose directory, below the innermost `tests`, holds this test file."""
    below = path.parts[len(path.parts) - path.parts[::-1].index("tests") :] if "tests" in path.parts else ()
    return below[0] if below and below[0] in TIERS else None


def pytest_configure(config: pytest.Config) -> None:
    gpus.hide()
    config.stash[LEFT_OUT] = Counter()
    if config.pluginmanager.hasplugin("xdist"):
        from tests import side_by_side

        config.pluginmanager.register(side_by_side.SideBySide(LEFT_OUT))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for no garbage among what is imported and collected: there is next to none, and millions of objects."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if tier := tier_of(item.path):
            item.add_marker(tier)


def pytest_deselected(items: Sequence[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("slow"):
            item.config.stash[LEFT_OUT][tier_of(item.path) or "other"] += 1


@pytest.fixture
def namespace(api: Api, request: pytest.FixtureRequest) -> Iterator[str]:
    """A fresh namespace on the tier's API server, named after the test, ready for pods; removed afterwards."""
    stem = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower())[:40].strip("-")
    manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": f"{stem}-"}}
    name: str = api.create("namespaces", None, manifest)["metadata"]["name"]
    api.wait_for("serviceaccounts", name, "default", lambda account: account is not None)
    yield name
    api.delete("namespaces", None, name)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """One line for each tier and reason: how many of its tests did not run, and why."""
    skipped: Counter[tuple[str, str]] = Counter()
    for report in terminalreporter.getreports("skipped"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        skipped[
            tier_of(Path(report.nodeid.split("::")[0])) or "other", re.sub(r"^(Skipped|[\w.]+Error): ", "", reason)
        ] += 1
    slow = terminalreporter.config.stash[LEFT_OUT]
    if skipped or slow:
        terminalreporter.section("not everything was tested")
        for (tier, reason), count in sorted(skipped.items()):
            terminalreporter.write_line(f"tier {tier}: {count} skipped: {reason}")
        for tier, count in sorted(slow.items()):
            how = SLOW.get(tier, "`pytest -m slow` runs them")
            terminalreporter.write_line(f"tier {tier}: {count} left out as slow: {how}")
