# SPDX-License-Identifier: Apache-2.0
"""From a script in an empty folder to its model in that folder, with a worker killed on the way."""

import contextlib
import http.client
import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from urllib.request import urlopen

from dtjob.client.cluster import connect
from dtjob.client.verbs.reports import read_reports
from tests.e2e.jobs.support.release import Release
from tests.e2e.jobs.support.training_job import TrainingJob
from tools.cluster.cluster import Cluster
from tools.cluster.rest import Api

SCRIPT = """
import keras
import numpy

import dtjob_trainer as dt

x = numpy.random.default_rng(0).normal(size=(2048, 8)).astype("float32")
model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(1)])
model.compile(loss="mse", optimizer="sgd")
dt.fit(model, x, x.sum(axis=1), batch_size=8, epochs=40, save="model.keras")
print("trained", flush=True)
"""


def listens_to_ctrl_c() -> None:
    """Let a child be interrupted, also if a shell started these tests in the background: it ignores SIGINT."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def tensorboard_tags(namespace: str, cluster: Cluster) -> dict[str, list[str]]:
    """The scalars of each run that TensorBoard of the job shows after its end."""
    where = ("-n", namespace, "--kubeconfig", str(cluster.kubeconfig))
    command = [sys.executable, "-m", "dtjob", "tensorboard", "train", "--port", "0", *where]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, preexec_fn=listens_to_ctrl_c) as shown:
        try:
            assert shown.stdout is not None
            address = shown.stdout.readline().split()[-1]
            limit = time.monotonic() + 120
            found: dict[str, list[str]] = {}
            while not found and time.monotonic() < limit:
                with (
                    contextlib.suppress(OSError, http.client.HTTPException),  # it starts, and reads the events
                    urlopen(f"{address}data/plugin/scalars/tags", timeout=30) as answer,
                ):
                    found = {run: list(tags) for run, tags in json.load(answer).items()}
                time.sleep(0 if found else 0.5)
            return found
        finally:
            shown.send_signal(signal.SIGINT)


def test_a_submitted_script_trains_and_its_model_is_fetched(
    cluster: Cluster, api: Api, release: Release, namespace: str, trainer_image: str, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)

    def dtjob(*arguments: str, stdin: str | None = None) -> str:
        where = ("-n", namespace, "--kubeconfig", str(cluster.kubeconfig))
        command = [sys.executable, "-m", "dtjob", arguments[0], *where, *arguments[1:]]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, cwd=tmp_path, timeout=280)
        assert done.returncode == 0, done.stderr
        return done.stdout

    dtjob("submit", "train.py", "--workers", "2", "--image", trainer_image, "--claim-size", "1Gi")
    job = TrainingJob(cluster, api, namespace, api.get("dtjobs", namespace, "train"))
    dtjob("wait", "train", "--for", "FirstStep", "--timeout", "240s")
    connected = connect(str(cluster.kubeconfig), namespace=namespace)
    reports, why = read_reports(connected, api.get("dtjobs", namespace, "train"), list(job.pods().values()))
    assert (set(reports), why) == ({"worker-0", "worker-1"}, "")
    assert dtjob("exec", "train", "--stdin", "--", "cat", stdin="from here") == "from here"
    assert reports["worker-0"]["step"] >= 1
    cluster.kill_container(job.pods()["worker-1"], "tensorflow")
    assert dtjob("top", "train").splitlines()[-1].startswith("train: Succeeded")
    logs = dtjob("logs", "train")
    assert "worker-0     | " in logs
    assert "worker-1.1   | " in logs
    assert "trained" in logs
    dtjob("fetch", "train")
    assert (tmp_path / "model.keras").stat().st_size > 0
    assert set(tensorboard_tags(namespace, cluster)) == {"train"}
    api.delete("pods", namespace, "train-worker-0-0")
    api.wait_for("pods", namespace, "train-worker-0-0", lambda pod: pod is None)
    kept = dtjob("logs", "train", "--attempt", "0", "--task", "worker-0")
    assert "worker-0     | trained" in kept
    assert "ending with 0" in kept
    assert "worker-1     | " in dtjob("logs", "train", "--attempt", "0", "--task", "worker-1")  # it was killed at once
    assert "worker-1 was killed" in dtjob("status", "train").partition("story (UTC)")[2]
    assert not [pod for pod in api.list("pods", namespace) if "helper" in pod["metadata"]["name"]]
