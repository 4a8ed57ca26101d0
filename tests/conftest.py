"""What tiers share: each test is marked with its tier, a namespace, and the end of a run says what it left out.

`make test` runs the end-to-end tier in one process and all others, one after the other, in a second one (pytest-xdist):
nodes mostly wait, and what else runs beside them is mostly an API server."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from xdist.workermanage import WorkerController

from tools.cluster.rest import Api

TIERS = ("unit", "cluster", "trainer", "e2e")
SLOW = "`make trainer-slow` and `make chaos` run them"
LEFT_OUT = pytest.StashKey[Counter[str]]()


def tier_of(path: Path) -> str | None:
    """The tier whose directory, below the innermost `tests`, holds this test file."""
    below = path.parts[len(path.parts) - path.parts[::-1].index("tests") :] if "tests" in path.parts else ()
    return below[0] if below and below[0] in TIERS else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if tier := tier_of(item.path):
            item.add_marker(tier)
        item.add_marker(pytest.mark.xdist_group("e2e" if tier == "e2e" else "others"))


def pytest_deselected(items: Sequence[pytest.Item]) -> None:
    """Count what is left out as slow: in a process of pytest-xdist's, whose summary is printed by another."""
    slow = Counter(tier_of(item.path) or "other" for item in items if item.get_closest_marker("slow"))
    for config in {id(item.config): item.config for item in items}.values():
        config.stash.setdefault(LEFT_OUT, Counter()).update(slow)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand the counts to the process that prints the summary."""
    output: dict[str, object] | None = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["left out"] = dict(session.config.stash.get(LEFT_OUT, Counter()))


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: WorkerController) -> None:
    """Take them over: every process collects, and leaves out, the same."""
    if counts := getattr(node, "workeroutput", {}).get("left out"):
        node.config.stash[LEFT_OUT] = Counter(counts)


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
    slow = terminalreporter.config.stash.get(LEFT_OUT, Counter())
    if skipped or slow:
        terminalreporter.section("not everything was tested")
        for (tier, reason), count in sorted(skipped.items()):
            terminalreporter.write_line(f"tier {tier}: {count} skipped: {reason}")
        for tier, count in sorted(slow.items()):
            terminalreporter.write_line(f"tier {tier}: {count} left out as slow: {SLOW}")
