# SPDX-License-Identifier: Apache-2.0
"""A stand-in for an API server, and the command line with it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from dtjob.client.cluster import Cluster, connect
from tests.unit.operator.client.api_server import ApiServer, serving


@pytest.fixture
def server() -> Iterator[ApiServer]:
    yield from serving()


@pytest.fixture
def cluster(server: ApiServer, tmp_path: Path) -> Cluster:
    return connect(str(server.kubeconfig(tmp_path)))
