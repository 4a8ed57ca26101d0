# SPDX-License-Identifier: Apache-2.0
"""The archive has what is needed, and no secrets."""

import tarfile
from pathlib import Path

import pytest

from dtjob.cli.bundle import REMOVED, collect, without_secrets
from dtjob.client.cluster import Cluster
from tests.unit.operator.client.api_server import ApiServer
from tests.unit.operator.client.verbs.jobs import JOBS, PODS, event, pod, stored


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


@pytest.mark.parametrize("name", ["API_TOKEN", "WANDB_KEY", "HF_AUTH", "DB_URL", "TF_KEY", "TF_VAR_db", "RATE"])
def test_values_of_variables_are_removed_but_known_ones(name: str) -> None:
    known = {"name": "TF_CPP_MIN_LOG_LEVEL", "value": "2"}
    found = without_secrets({"env": [{"name": name, "value": "x"}, known], "managedFields": []})
    assert found == {"env": [{"name": name, "value": REMOVED}, known]}


def test_values_of_arguments_are_removed_but_known_ones() -> None:
    known = ["python3", "-m", "dtjob_trainer", "src/train.py", "--lr=1e-3", "--steps", "10"]
    words = [
        *known,
        "--api-key=4",
        "--user=me",
        "--token",
        "k4",
        "-pk4",
        "--password",
        "123456",
        "https://u:pw@host/train.py",
    ]
    assert without_secrets({"args": words})["args"] == [
        *known, f"--api-key={REMOVED}", f"--user={REMOVED}", "--token", REMOVED, REMOVED, "--password",
        REMOVED,
        f"https://{REMOVED}@host/train.py",
    ]  # fmt: skip


def test_values_of_annotations_are_removed_but_known_ones() -> None:
    known = {"training.dtjob.dev/a": "1", "meta.helm.sh/release-name": "team"}
    found = without_secrets({"metadata": {"annotations": {**known, "example.com/token": "hidden", "note": "hidden"}}})
    assert found["metadata"]["annotations"] == {**known, "example.com/token": REMOVED, "note": REMOVED}


def test_passwords_in_urls_are_removed_from_each_file(server: ApiServer, cluster: Cluster, tmp_path: Path) -> None:
    """An exception of the program has them, and is in the status and in Events."""
    said = "postgres://u:hidden@h/db and https://h/data?X-Amz-Signature=hidden&sig=hidden&size=3 cannot be reached"
    job = stored()
    job["status"] |= {"message": said, "lastFailure": {"task": "worker-0", "logTail": said}}
    server.answer(f"GET {JOBS}/digits", job)
    one = event("digits", "2026-11-23T11:58:00Z", "DistributedTrainingJob", "u", message=said)
    server.answer("GET /api/v1/namespaces/team/events", {"items": [one], "metadata": {}})
    server.answer(f"GET {PODS}", {"items": [pod("worker-1")], "metadata": {}})
    server.answer(f"GET {PODS}/digits-worker-1-0/log", f"2026 {said}\n".encode())
    file = tmp_path / "bundle.tar.gz"
    collect(cluster, "digits", file, str)
    with tarfile.open(file) as archive:
        texts = {one.name: archive.extractfile(one).read() for one in archive.getmembers()}  # type: ignore[union-attr]
    assert {name for name, text in texts.items() if b"hidden" in text} == set()
    assert sum(b"&size=3" in text for text in texts.values()) == 4
