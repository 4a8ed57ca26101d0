# SPDX-License-Identifier: Apache-2.0
"""A job of a cluster as an object."""

import threading
import time
from pathlib import Path

import pytest

import dtjob
from dtjob.api.phase import Phase
from dtjob.bad_input import BadInput
from tests.unit.operator import builders
from tests.unit.operator.client.api_server import ApiServer, Fault
from tests.unit.operator.client.verbs.jobs import JOBS, PODS, RUNNING, pod, stored


@pytest.fixture
def client(server: ApiServer, tmp_path: Path) -> dtjob.Client:
    found = stored()
    found["status"] = RUNNING
    server.answer(f"GET {JOBS}/digits", found)
    return dtjob.Client(kubeconfig=server.kubeconfig(tmp_path))


def ended(phase: str) -> dict[str, object]:
    found = stored(phase)
    found["status"]["message"] = "as it came"
    return {"type": "MODIFIED", "object": found}


def test_a_function_is_sent_as_its_source_and_its_options_reach_the_manifest(
    client: dtjob.Client, server: ApiServer
) -> None:
    files = "/api/v1/namespaces/team/configmaps"
    server.answer(f"POST {files}", {"metadata": {"name": "train-source"}})
    server.answer(f"POST {JOBS}", {"metadata": {"name": "train", "uid": "u"}})
    client.train(
        train,
        {"epochs": 5},
        workers=2,
        cpu=4,
        memory="8Gi",
        env={"A": "1"},
        env_from_secrets=["wandb"],
        mounts=["images:/data:ro"],
        requirements="numpy\n",
        checkpoint="gs://bucket/train",
        settings={"spec.failurePolicy.maxRestarts": 3, "spec.program.args": ["--fast"], "spec.image": "1"},
    )
    sent, made = (
        next(body for method, path, body in server.asked if method == "POST" and path.startswith(where))
        for where in (files, JOBS)
    )
    assert "def train(epochs: int):" in sent["data"]["train.py"]
    assert sent["data"]["requirements.txt"] == "numpy\n"
    spec = made["spec"]
    assert spec["program"]["env"] == [{"name": "A", "value": "1"}]
    assert spec["program"]["envFrom"] == [{"secretRef": {"name": "wandb"}}]
    assert spec["replicaSpecs"]["worker"]["resources"] == {"limits": {"cpu": "4", "memory": "8Gi"}}
    assert spec["replicaSpecs"]["worker"]["template"]["spec"]["volumes"][0]["name"] == "mount-1"
    assert spec["checkpoint"]["storage"] == {"uri": "gs://bucket/train"}
    assert (spec["failurePolicy"], spec["image"]) == ({"maxRestarts": 3}, "1")
    assert spec["program"]["args"] == ["--fast"]


def test_status_manifest_and_metrics_are_typed(client: dtjob.Client) -> None:
    job = client.get("digits")
    assert job.status.phase is Phase.RUNNING
    assert job.manifest.spec.image == "registry.example/a:1"
    assert job.metrics() == {"step": 251.0, "loss": 0.5}
    assert "<pre>digits: Running" in job._repr_html_()


def test_a_job_is_waited_for(server: ApiServer, client: dtjob.Client) -> None:
    job = client.get("digits")
    assert job.wait("Running").phase is Phase.RUNNING
    server.answer(f"WATCH {JOBS}", [ended("Failed")])
    with pytest.raises(dtjob.JobFailed, match="digits"):
        job.wait()
    server.answer(f"WATCH {JOBS}", [{"type": "DELETED", "object": stored()}])
    server.answer(f"GET {JOBS}/digits", stored(), Fault(404))
    for _ in range(2):  # while it is deleted, and when it is gone
        assert job.wait("Deleted").phase is None


@pytest.mark.parametrize("follow", [False, True])
def test_logs_are_lines_of_tasks(server: ApiServer, client: dtjob.Client, follow: bool) -> None:
    server.answer(f"WATCH {JOBS}", [ended("Succeeded")])
    server.answer(f"GET {PODS}", {"items": [pod("worker-0")], "metadata": {"resourceVersion": "1"}})
    server.answer(f"GET {PODS}/digits-worker-0-0/log", b"2026-11-23T12:00:00Z a line\n")
    assert list(client.get("digits").logs(follow=follow)) == ["worker-0 | a line"]


@pytest.mark.parametrize("by_client", [False, True])
def test_a_reader_of_logs_that_leaves_ends_all_that_reads(
    server: ApiServer, client: dtjob.Client, by_client: bool
) -> None:
    """In a notebook each cell that is interrupted would leave threads, connections and a growing queue."""
    line = b"2026-11-23T12:00:00Z a line\n"
    server.answer(f"WATCH {JOBS}", Fault(hold=True))
    server.answer(f"WATCH {PODS}", Fault(hold=True))
    server.answer(f"GET {PODS}", {"items": [pod("worker-0")], "metadata": {"resourceVersion": "1"}})
    server.answer(f"GET {PODS}/digits-worker-0-0/log", Fault(broken=line * 3000, hold=True))
    before = set(threading.enumerate())

    def left() -> list[threading.Thread]:
        others = (thread for thread in threading.enumerate() if thread not in before)
        return [thread for thread in others if "process_request" not in thread.name]

    lines = client.get("digits").logs(follow=True)
    assert next(lines) == "worker-0 | a line"
    assert left()
    if by_client:
        client.close()
        with pytest.raises(dtjob.ClientError, match="has ended"):
            list(lines)
    else:
        lines.close()
    deadline = time.monotonic() + 10  # the server holds the logs and watches for longer
    while left():
        assert time.monotonic() < deadline, left()
        time.sleep(0.01)


def test_a_job_is_created_from_its_model(server: ApiServer, client: dtjob.Client) -> None:
    server.answer(f"POST {JOBS}", stored())
    model = dtjob.Job.model_validate({"metadata": {"name": "digits"}, "spec": builders.job().spec})
    assert client.run(model).name == "digits"
    sent = server.asked[-1][2]
    assert (sent["metadata"]["namespace"], sent["kind"]) == ("team", "DistributedTrainingJob")
    server.answer(f"POST {JOBS}", {"message": "exists"}, code=409)
    with pytest.raises(dtjob.Refused, match="has a job digits"):
        client.run(model)


def test_a_job_goes_to_its_own_namespace_or_is_refused(server: ApiServer, client: dtjob.Client, tmp_path: Path) -> None:
    model = builders.job()
    model = model.model_copy(update={"metadata": type(model.metadata)(name="digits", namespace="production")})
    server.answer(f"POST {JOBS.replace('/team/', '/production/')}", stored())
    assert client.run(model).namespace == "production"
    assert server.asked[-1][2]["metadata"]["namespace"] == "production"
    with pytest.raises(BadInput, match="digits: its namespace is production, and not team"):
        dtjob.Client(kubeconfig=server.kubeconfig(tmp_path), namespace="team").run(model)


def test_the_client_warns_of_what_a_job_may_not_be_meant_to_do(server: ApiServer, client: dtjob.Client) -> None:
    """As `dtjob validate` and `dtjob submit` say it."""
    server.answer(f"POST {JOBS}", stored())
    server.answer(f"POST {JOBS.replace('/team/', f'/{builders.job().metadata.namespace}/')}", stored())
    server.answer("POST /api/v1/namespaces/team/configmaps", {})
    rule = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [0, 1]}}
    with pytest.warns(UserWarning, match="exit code 0 is success"):
        client.run(builders.job(failurePolicy={"rules": [rule]}))
    with pytest.warns(UserWarning, match="checkpoints end with the pod"):
        client.train(train, {"epochs": 1})


def train(epochs: int):
    print(epochs)


def test_without_a_cluster_there_are_no_jobs_to_list() -> None:
    with pytest.raises(BadInput, match="runs jobs on this machine"):
        dtjob.Client(here=True).list()


def test_a_client_that_is_left_ends_its_calls(server: ApiServer, client: dtjob.Client) -> None:
    with client:
        job = client.get("digits")
    with pytest.raises(dtjob.ClientError, match="has ended"):
        _ = job.status
