# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the end-to-end tier: a cluster with real nodes for all tests, a namespace for each.

The cluster and what runs on it end with the last test of this package, as other tests of the process may follow.
"""

from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import tier_of
from tests.e2e.support import evidence
from tools import binaries
from tools.cluster import provider
from tools.cluster.bare_node import BareNode
from tools.cluster.cluster import Cluster, UnsupportedError
from tools.cluster.rest import Api
from tools.node import packages
from tools.programs import NODE

LATE = ("cluster", "long_job")
LONGEST_SECONDS = 900
"""For one test with what it is the first to need: cluster, images, operator. Each wait has its own, shorter limit."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that start nodes of their own come before the shared cluster, which then may hold the machine; those of
    the job that trains without an end come last, as it takes all of the machine's cores."""
    ours = [item for item in items if tier_of(item.path) == "e2e"]
    for item in ours:
        if not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(LONGEST_SECONDS))
    ordered = iter(sorted(ours, key=lambda item: [name in getattr(item, "fixturenames", ()) for name in LATE]))
    items[:] = [next(ordered) if tier_of(item.path) == "e2e" else item for item in items]


@pytest.fixture(scope="package")
def node_programs(pytestconfig: pytest.Config) -> dict[str, Path]:
    """What a node is started from. Skips where it cannot be had."""
    capture = pytestconfig.pluginmanager.getplugin("capturemanager")
    try:
        with capture.global_and_fixture_disabled():  # installing and building take minutes, and say so
            packages.ensure()
            return binaries.find(NODE)
    except (packages.UnavailableError, binaries.BinariesError) as error:
        pytest.skip(f"no node: {str(error).splitlines()[0]}")


def started_or_skipped(programs: dict[str, Path]) -> BareNode:
    """A running node. Skips where this machine can have none, or has another."""
    node = BareNode(programs)
    try:
        node.start()
    except packages.UnavailableError as error:
        pytest.skip(f"no node: {error}")
    return node


@pytest.fixture(scope="package")
def cluster(pytestconfig: pytest.Config) -> Iterator[Cluster]:
    """The cluster, for all tests. Skips where there can be none."""
    capture = pytestconfig.pluginmanager.getplugin("capturemanager")
    try:
        with capture.global_and_fixture_disabled():  # installing and building take minutes, and say so
            running = provider.choose()
        running.start()
    except (packages.UnavailableError, binaries.BinariesError) as error:
        pytest.skip(f"no cluster: {str(error).splitlines()[0]}")
    yield running
    running.stop()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, None, None]:
    """A test is skipped where its cluster cannot do what it needs."""
    try:
        return (yield)
    except UnsupportedError as error:
        pytest.skip(str(error))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """As in its fixtures."""
    return (yield from pytest_runtest_setup(item))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Function, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test that fails leaves the state of its cluster in a folder, and says which."""
    report = yield
    cluster: Any = item.funcargs.get("cluster")
    if report.failed and report.when != "teardown" and cluster:
        words = [getattr(value, "namespace", value) for value in item.funcargs.values()]
        try:
            left = f"is in {evidence.collect(cluster, item.name, [word for word in words if isinstance(word, str)])}"
        except Exception as error:  # the test's own failure is what must be told
            left = f"could not be written down: {error}"
        report.sections.append(("what the cluster said", left))
    return report


@pytest.fixture(scope="package")
def node(cluster: Cluster) -> BareNode:
    """The cluster where it is the bare node; elsewhere a skip."""
    if not isinstance(cluster, BareNode):
        pytest.skip(f"a test of the bare node itself; this is {cluster.name}")
    return cluster


@pytest.fixture(scope="package")
def api(cluster: Cluster) -> Api:
    """Plain calls to the API server, and waiting by watch."""
    return Api(cluster.kubeconfig)
