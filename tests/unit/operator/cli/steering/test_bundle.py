# SPDX-License-Identifier: Apache-2.0
"""The archive has what is needed, and no secrets."""

import tarfile
from pathlib import Path

from dtjob.cli.steering.bundle import REMOVED, collect, without_secrets
from dtjob.client.cluster import Cluster
from tests.unit.operator.cli.watching.jobs import pod
from tests.unit.operator.client.api_server import ApiServer

PODS = "/api/v1/namespaces/team/pods"


def test_the_bundle_has_objects_logs_and_the_errors_of_missing_parts(
    server: ApiServer, cluster: Cluster, tmp_path: Path
) -> None:
    server.answer(f"GET {PODS}", {"items": [pod("worker-1")], "metadata": {}})
    server.answer(f"GET {PODS}/digits-worker-1-0/log", b"2026 a line\n")
    server.answer("GET /api/v1/namespaces/team/events", {"items": [], "metadata": {}})
    file = tmp_path / "bundle.tar.gz"
    said: list[str] = []
    names = collect(cluster, "digits", file, said.append)
    assert said == ["digits: collecting its objects, events, logs and metrics"]
    with tarfile.open(file) as archive:
        assert archive.getnames() == [f"digits/{name}" for name in names]
        log = archive.extractfile("digits/logs/digits-worker-1-0.log")
        assert log is not None
        assert log.read() == b"2026 a line\n"
    assert {"job.yaml", "pods.yaml", "events.txt", "status.txt", "services.yaml.error"} <= set(names)


def test_values_that_look_like_secrets_are_removed() -> None:
    env = [{"name": "API_TOKEN", "value": "x"}, {"name": "db_password", "value": "x"}, {"name": "RATE", "value": "1"}]
    assert without_secrets({"env": env, "managedFields": []}) == {
        "env": [
            {"name": "API_TOKEN", "value": REMOVED},
            {"name": "db_password", "value": REMOVED},
            {"name": "RATE", "value": "1"},
        ]
    }
