# SPDX-License-Identifier: Apache-2.0
"""A script's job and its files: nobody else's are touched, and none of its own are left."""

import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dtjob.client.cluster import Cluster, connect
from dtjob.client.errors import ClientError, Conflict, NotReached
from dtjob.client.verbs.submit import create, submit
from dtjob.manifests.package import MADE_BY_US
from dtjob.manifests.submitted import Made
from tests.unit.operator.client.api_server import ApiServer, Fault, serving
from tests.unit.operator.client.verbs.jobs import JOBS

FILES = "/api/v1/namespaces/team/configmaps"
EXISTS = Fault(409, message="already exists")
JOB = {"kind": "DistributedTrainingJob", "metadata": {"name": "train"}}
SENT = {"kind": "ConfigMap", "metadata": {"name": "train-source", "labels": MADE_BY_US}}
MADE = Made(SENT, JOB, [])


@pytest.fixture
def server() -> Iterator[ApiServer]:
    for server in serving():
        server.answer(f"POST {FILES}", {})
        server.answer(f"POST {JOBS}", {"metadata": {"name": "train", "uid": "u"}})
        server.answer(f"DELETE {JOBS}/train", {})
        server.answer(f"DELETE {FILES}/train-source", {})
        yield server


@pytest.fixture
def cluster(server: ApiServer, tmp_path: Path) -> Cluster:
    return connect(str(server.kubeconfig(tmp_path)))


def asked(server: ApiServer) -> list[str]:
    """The calls but those that try something out."""
    return [f"{method} {path.partition('?')[0]}" for method, path, _ in server.asked if "dryRun" not in path]


def left(labels: dict[str, str]) -> dict[str, Any]:
    return {"metadata": {"name": "train-source", "uid": "old", "labels": labels}}


def test_the_job_is_created_and_then_the_files_that_it_owns(server: ApiServer, cluster: Cluster) -> None:
    submit(cluster, MADE)
    assert asked(server) == [f"POST {JOBS}", f"POST {FILES}"]
    assert server.asked[-1][2]["metadata"]["ownerReferences"][0]["uid"] == "u"


def test_a_submitter_who_comes_second_touches_nothing(server: ApiServer, cluster: Cluster) -> None:
    """Two submit a script of one name at the same time. The first one's job keeps its files."""
    server.answer(f"POST {FILES}", EXISTS)
    server.answer(f"GET {FILES}/train-source", left(MADE_BY_US))
    server.answer(f"POST {JOBS}", EXISTS)
    with pytest.raises(Conflict, match="has a job train; choose another name"):
        submit(cluster, MADE)
    assert asked(server) == [f"GET {FILES}/train-source", f"POST {JOBS}", f"GET {JOBS}/train"]


def test_files_that_a_deleted_job_has_left_are_replaced(server: ApiServer, cluster: Cluster) -> None:
    server.answer(f"POST {FILES}", EXISTS, EXISTS, {})
    server.answer(f"GET {FILES}/train-source", left(MADE_BY_US))
    submit(cluster, MADE)
    assert asked(server)[-2:] == [f"DELETE {FILES}/train-source", f"POST {FILES}"]
    assert server.asked[-2][2]["preconditions"] == {"uid": "old"}


def test_files_of_somebody_else_stay(server: ApiServer, cluster: Cluster) -> None:
    server.answer(f"POST {FILES}", EXISTS)
    server.answer(f"GET {FILES}/train-source", left({}))
    with pytest.raises(Conflict, match="of somebody else; choose another name"):
        submit(cluster, MADE)
    assert asked(server) == [f"GET {FILES}/train-source"]


def test_a_job_whose_files_are_refused_is_not_created(server: ApiServer, cluster: Cluster) -> None:
    server.answer(f"POST {FILES}", Fault(403, message="exceeded quota"))
    with pytest.raises(ClientError, match="exceeded quota"):
        submit(cluster, MADE)
    assert asked(server) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_job_is_deleted_if_a_signal_ends_the_submit(server: ApiServer, cluster: Cluster, number: int) -> None:
    """The call that was broken off does not stand in the way of the deletion."""
    server.answer(f"POST {FILES}", {}, Fault(broken=b"{", hold=True))
    threading.Timer(0.5, signal.pthread_kill, (threading.main_thread().ident, number)).start()
    with pytest.raises((KeyboardInterrupt, SystemExit)):
        submit(cluster, MADE)
    assert asked(server)[-1] == f"DELETE {JOBS}/train"


def test_a_job_whose_creation_was_not_answered_may_be_there(server: ApiServer, cluster: Cluster) -> None:
    server.answer(f"POST {JOBS}", Fault())
    with pytest.raises(NotReached, match="dtjob status train says whether the job was created; if so, delete the job"):
        submit(cluster, MADE)


def test_a_job_that_was_read_is_submitted_as_a_new_one(server: ApiServer, cluster: Cluster) -> None:
    create(cluster, {**JOB, "metadata": {"name": "train", "uid": "u", "resourceVersion": "7", "generation": 2}})
    assert server.asked[-1][2]["metadata"] == {"name": "train"}


def test_a_name_whose_job_is_being_deleted_is_free_later(server: ApiServer, cluster: Cluster) -> None:
    server.answer(f"POST {JOBS}", EXISTS)
    server.answer(f"GET {JOBS}/train", {"metadata": {"name": "train", "deletionTimestamp": "2026-11-23T11:00:00Z"}})
    with pytest.raises(Conflict, match="which is being deleted; dtjob wait train --for Deleted"):
        create(cluster, JOB)


def test_a_job_whose_files_could_not_be_made_is_deleted(server: ApiServer, cluster: Cluster) -> None:
    server.answer(f"POST {FILES}", {}, Fault(500))
    with pytest.raises(ClientError):
        submit(cluster, MADE)
    assert asked(server)[-1] == f"DELETE {JOBS}/train"
    assert server.asked[-1][2]["preconditions"] == {"uid": "u"}
