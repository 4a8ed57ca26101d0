# SPDX-License-Identifier: Apache-2.0
"""An API server for a test, and a client of it."""

from pathlib import Path

import pytest

from dtjob.client.cluster import Cluster, connect
from tests.unit.operator.client.api_server import ApiServer


@pytest.fixture
def cluster(server: ApiServer, tmp_path: Path) -> Cluster:
    return connect(str(server.kubeconfig(tmp_path, token="secret")))
