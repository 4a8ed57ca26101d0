"""Fixtures of the end-to-end tier: a cluster with a real node for the session, a namespace for each test."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.rest import Api
from tests.e2e import packages
from tests.e2e.node import Node
from tests.tools import binaries


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that start nodes of their own come before the session's node, which then holds the machine."""
    items.sort(key=lambda item: "node" in getattr(item, "fixturenames", ()))


@pytest.fixture(scope="session")
def node_programs(pytestconfig: pytest.Config) -> dict[str, Path]:
    """What a node is started from. Skips where it cannot be had."""
    capture = pytestconfig.pluginmanager.getplugin("capturemanager")
    try:
        with capture.global_and_fixture_disabled():  # installing and building take minutes, and say so
            packages.ensure()
            return binaries.find(binaries.NODE)
    except (packages.UnavailableError, binaries.BinariesError) as error:
        pytest.skip(f"no node: {str(error).splitlines()[0]}")


def started_or_skipped(programs: dict[str, Path]) -> Node:
    """A running node. Skips where this machine can have none, or has another."""
    node = Node(programs)
    try:
        node.start()
    except packages.UnavailableError as error:
        pytest.skip(f"no node: {error}")
    return node


@pytest.fixture(scope="session")
def node(node_programs: dict[str, Path]) -> Iterator[Node]:
    """The cluster, for the whole session."""
    running = started_or_skipped(node_programs)
    yield running
    running.stop()


@pytest.fixture(scope="session")
def api(node: Node) -> Api:
    """Plain calls to the API server, and waiting by watch."""
    return Api(node.kubeconfig)


@pytest.fixture
def namespace(api: Api, request: pytest.FixtureRequest) -> Iterator[str]:
    """A fresh namespace, named after the test, ready for pods; removed afterwards."""
    stem = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower())[:40].strip("-")
    manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": f"{stem}-"}}
    name: str = api.create("namespaces", None, manifest)["metadata"]["name"]
    api.wait_for("serviceaccounts", name, "default", lambda account: account is not None)
    yield name
    api.delete("namespaces", None, name)
