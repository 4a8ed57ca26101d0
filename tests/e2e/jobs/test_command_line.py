# SPDX-License-Identifier: Apache-2.0
"""From a script in an empty folder to its model in that folder, with a worker killed on the way."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from dtjob.cli.watching.reports import read_reports
from dtjob.client.cluster import connect
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


def test_a_submitted_script_trains_and_its_model_is_fetched(
    cluster: Cluster, api: Api, release: Release, namespace: str, trainer_image: str, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    cluster.claim(namespace, "train")

    def dtjob(*arguments: str) -> str:
        where = ("-n", namespace, "--kubeconfig", str(cluster.kubeconfig))
        command = [sys.executable, "-m", "dtjob", *arguments, *where]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, timeout=280)
        assert done.returncode == 0, done.stderr
        return done.stdout

    dtjob("submit", "train.py", "--workers", "2", "--image", trainer_image, "--claim", "train")
    job = TrainingJob(cluster, api, namespace, api.get("dtjobs", namespace, "train"))
    dtjob("wait", "train", "--for", "FirstStep", "--timeout", "240s")
    connected = connect(str(cluster.kubeconfig), namespace=namespace)
    reports, why = read_reports(connected, api.get("dtjobs", namespace, "train"), list(job.pods().values()))
    assert (set(reports), why) == ({"worker-0", "worker-1"}, "")
    assert reports["worker-0"]["step"] >= 1
    cluster.kill_container(job.pods()["worker-1"], "tensorflow")
    assert dtjob("top", "train").splitlines()[-1].startswith("train: Succeeded")
    logs = dtjob("logs", "train")
    assert "worker-0     | " in logs
    assert "worker-1.1   | " in logs
    assert "trained" in logs
    dtjob("fetch", "train")
    assert (tmp_path / "model.keras").stat().st_size > 0
    assert not [pod for pod in api.list("pods", namespace) if "helper" in pod["metadata"]["name"]]
