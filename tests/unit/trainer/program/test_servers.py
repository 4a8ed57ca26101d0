# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.program.servers: a program that starts a server in a job without servers."""

import json
from typing import Any

import pytest

from dtjob_trainer.contract.task import Task
from dtjob_trainer.errors import NoServerError
from dtjob_trainer.process.runtime import Runtime

tf = pytest.importorskip("tensorflow")
servers = pytest.importorskip("dtjob_trainer.program.servers")

HOMES = (tf.distribute, tf.compat.v2.distribute, tf.compat.v1.distribute, tf.compat.v1.train)
CLUSTER = {"worker": ["localhost:2222", "localhost:2223"]}


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Runtime:
    """A job under Mirrored whose program finds its `Server`."""
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": CLUSTER, "task": {"type": "worker", "index": 0}}))
    for home in HOMES:
        monkeypatch.setattr(home, "Server", home.Server)
    task = Task(name="job", namespace="default", uid="1", role="chief", index=0, strategy="Mirrored")
    runtime = Runtime(task)
    coordinators = (tf.distribute.coordinator, tf.distribute.experimental.coordinator)
    for home in coordinators:
        monkeypatch.setattr(home, "ClusterCoordinator", home.ClusterCoordinator)
    servers.start_none(runtime, task)
    servers.refuse_coordinators(task)
    return runtime


@pytest.mark.parametrize("cluster", [CLUSTER, tf.train.ClusterSpec(CLUSTER), {"worker": {1: "localhost:2223"}}])
@pytest.mark.parametrize("home", HOMES)
def test_a_server_of_the_job_waits_for_nothing(here: Runtime, home: Any, cluster: Any) -> None:
    server = home.Server(cluster, job_name="worker", task_index=1, protocol="grpc", start=True)
    server.start()
    server.join()
    assert here.joined_server


def test_a_server_of_another_cluster_is_tensorflows(here: Runtime) -> None:
    server = tf.distribute.Server.create_local_server()
    assert server.target.startswith("grpc://")
    assert tf.distribute.Server({"worker": ["localhost:0"]}, start=False).server_def.job_name == "worker"
    assert not here.joined_server


def test_a_program_that_has_trained_nothing_after_join_says_what_to_change(here: Runtime) -> None:
    servers.refuse_to_wait(here)
    tf.distribute.Server(CLUSTER, "worker", 0).join()
    with pytest.raises(NoServerError, match="under Mirrored there are no servers; set"):
        servers.refuse_to_wait(here)


@pytest.mark.parametrize("trains", ["fit", "own loop"])
def test_a_program_that_trains_after_join_is_right(here: Runtime, trains: str) -> None:
    tf.distribute.Server(CLUSTER, "worker", 0).join()
    if trains == "fit":
        here.begin_stage()
    else:
        here.progress.report(trainsItself=True)
    servers.refuse_to_wait(here)


@pytest.mark.parametrize("home", [tf.distribute.coordinator, tf.distribute.experimental.coordinator])
def test_a_coordinator_says_what_to_change(here: Runtime, home: Any) -> None:
    assert here.task is not None
    with pytest.raises(NoServerError, match="under Mirrored there are none; set spec"):
        home.ClusterCoordinator(tf.distribute.get_strategy())
