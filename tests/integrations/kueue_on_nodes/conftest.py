# SPDX-License-Identifier: Apache-2.0
"""Fixtures: the end-to-end tests' nodes, images and operator, with the real Kueue beside them, and a queue."""

from collections.abc import Iterator

import pytest

from tests.cluster.support.kueue import on_the_page
from tests.e2e.conftest import api, cluster, node, pytest_runtest_makereport
from tests.e2e.jobs.conftest import new_job, operator, release, trainer_image
from tests.integrations.kueue.manager import Kueue, NoKueue
from tools.cluster.bare_node import BareNode
from tools.cluster.rest import Api, Object

__all__ = ["api", "cluster", "new_job", "node", "operator", "pytest_runtest_makereport", "release", "trainer_image"]
QUEUE = ("ResourceFlavor", "ClusterQueue", "WorkloadPriorityClass", "LocalQueue")
PLURALS = ("resourceflavors", "clusterqueues", "workloadpriorityclasses", "localqueues")


@pytest.fixture(scope="package")
def chart_values() -> tuple[str, ...]:
    """The operator may keep Workloads."""
    return ("kueue.enabled=true",)


@pytest.fixture(scope="package")
def kueue(node: BareNode) -> Iterator[Kueue]:
    """The real Kueue, at work beside the nodes' API server."""
    try:
        running = Kueue(node.control_plane)
        running.install()
    except NoKueue as error:
        pytest.skip(f"no Kueue: {error}")
    running.start()
    yield running
    running.stop()


@pytest.fixture
def queue(kueue: Kueue, api: Api, namespace: str) -> Iterator[str]:
    """The queue of docs/jobs/kueue.md in the test's namespace; returns its name. Its quota is 0.3 cores."""
    page = on_the_page()
    for kind, plural in zip(QUEUE, PLURALS, strict=True):
        api.create(plural, namespace if kind == "LocalQueue" else None, _small(page[kind], namespace))
    yield page["LocalQueue"]["metadata"]["name"]
    print(kueue.log)
    api.wait("workloads", namespace, lambda left: not left)
    for kind, plural in reversed(list(zip(QUEUE, PLURALS, strict=True))):
        name, inside = page[kind]["metadata"]["name"], namespace if kind == "LocalQueue" else None
        api.delete(plural, inside, name)
        api.wait_for(plural, inside, name, lambda one: one is None)


def _small(manifest: Object, namespace: str) -> Object:
    if manifest["kind"] == "LocalQueue":
        return {**manifest, "metadata": {**manifest["metadata"], "namespace": namespace}}
    for group in manifest.get("spec", {}).get("resourceGroups", ()):
        for flavour in group["flavors"]:
            for one in flavour["resources"]:
                one["nominalQuota"] = {"cpu": "300m", "memory": "1Gi"}[one["name"]]
    return manifest
