# SPDX-License-Identifier: Apache-2.0
"""A stand-in for an API server with one job."""

from pathlib import Path

import pytest

from dtjob.client.cluster import Cluster
from tests.unit.operator.client.api_server import ApiServer
from tests.unit.operator.client.verbs.jobs import PODS, pod, stamped, with_digits


@pytest.fixture
def cluster(server: ApiServer, tmp_path: Path) -> Cluster:
    return with_digits(server, tmp_path)


@pytest.fixture
def logs(server: ApiServer) -> ApiServer:
    pods = [pod("worker-0"), pod("worker-0", 1), pod("worker-1")]
    server.answer(f"GET {PODS}", {"items": pods, "metadata": {"resourceVersion": "1"}})
    server.answer(f"GET {PODS}/digits-worker-0-0/log", stamped((1, "a"), (3, "c")))
    server.answer(f"GET {PODS}/digits-worker-0-1/log", stamped((5, "e")))
    server.answer(f"GET {PODS}/digits-worker-1-0/log", stamped((2, "b"), (4, "d")))
    return server
