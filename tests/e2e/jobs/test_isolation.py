# SPDX-License-Identifier: Apache-2.0
"""Who reaches a job's pods: TensorFlow's port has no authentication, so only pods of the same job may."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from dtjob.objects import labels
from tests.cluster.support.chart import NAMESPACE as OPERATOR_NAMESPACE
from tests.cluster.support.chart import RELEASE
from tests.e2e.jobs.conftest import SCRAPER, NewJob
from tests.e2e.jobs.support.training_job import RESTRICTED, TrainingJob, digits
from tests.e2e.jobs.support.volumes import output, python_pod
from tools.cluster.cluster import Cluster
from tools.cluster.rest import Api

_CONNECT = """
import json, socket, time
from concurrent.futures import ThreadPoolExecutor

def reached(place):
    task, port = place.split(":")
    while time.monotonic() < began + (90 if place in HOPED else 15):
        try:
            socket.create_connection((HOSTS[task], int(port)), timeout=10).close()
            return True
        except OSError:
            time.sleep(0.5)
    return False

began = time.monotonic()
with ThreadPoolExecutor(len(PLACES)) as pool:
    print(json.dumps([place for place, yes in zip(PLACES, pool.map(reached, PLACES)) if yes]))
"""
"""Connect to each of PLACES, again and again, since it takes some time until a policy knows a new pod. If a place is in
HOPED, this may take long."""
OPEN = {"chief-0": [2222, 2223, 2224, 2225], "worker-0": [2222, 2223], "data-0": [2222, 2223]}
"""Ports at which the tasks of a job with data workers listen."""
EVERYTHING = {f"{task}:{port}" for task, ports in OPEN.items() for port in ports}
STATUS = {f"{task}:2223" for task in OPEN}
NOTHING: set[str] = set()


@pytest.fixture
def guarded(cluster: Cluster) -> Iterator[str]:
    """A node; NetworkPolicies are enforced for its pods."""
    with cluster.network_policies() as node:
        yield node


@pytest.fixture
def elsewhere(api: Api) -> Iterator[str]:
    """Another namespace."""
    metadata = {"generateName": "elsewhere-", "labels": RESTRICTED}
    made = api.create("namespaces", None, {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    name: str = made["metadata"]["name"]
    api.wait_for("serviceaccounts", name, "default", lambda account: account is not None)
    yield name
    api.delete("namespaces", None, name)


class Visitors:
    """Pods and programs that try to connect to a job's tasks. Each finds a set of TASK:PORT."""

    def __init__(self, api: Api, cluster: Cluster, job: TrainingJob, elsewhere: str, image: str) -> None:
        self._api, self._cluster, self._job, self._image = api, cluster, job, image
        same = {name: job.pods()["chief-0"]["metadata"]["labels"][name] for name in (labels.JOB_NAME, labels.JOB_UID)}
        other = {labels.JOB_NAME: "other", labels.JOB_UID: "00000000-0000-0000-0000-000000000000"}
        self._pods = {
            # name, namespace, labels
            "stranger": (job.namespace, {}),
            "another-job": (job.namespace, other),
            # a name like the operator's opens nothing outside the operator's own namespace
            "named-operator": (job.namespace, {"app.kubernetes.io/name": "dtjob"}),
            "scraper": (job.namespace, SCRAPER),
            "away": (elsewhere, {}),
            "away-as-the-job": (elsewhere, same),
            "away-as-scraper": (elsewhere, SCRAPER),
        }

    def pods(self, suffix: str) -> dict[str, set[str]]:
        """What pods find that are made for this, with this at the end of their names."""

        def of(name: str) -> set[str]:
            namespace, marks = self._pods[name]
            script = self._script(STATUS if name == "scraper" else NOTHING)
            pod = python_pod(f"{name}-{suffix}", self._image, script, **marks)
            return set(json.loads(output(self._api, self._cluster, namespace, pod)))

        with ThreadPoolExecutor() as pool:
            return dict(zip(self._pods, pool.map(of, self._pods), strict=True))

    def task(self, task: str) -> set[str]:
        """What a task of the job finds, by the names that TF_CONFIG has."""
        pod = self._job.pods()[task]["metadata"]["name"]
        script = self._script(EVERYTHING, {task: f"{self._job.name}-{task}.{self._job.name}" for task in OPEN})
        return set(json.loads(self._job.kubectl("exec", pod, "--", "python3", "-c", script).stdout))

    def operator(self) -> set[str]:
        """What the operator's own pod finds."""
        command = ["exec", f"deployment/{RELEASE}", "--", "python3", "-c", self._script(STATUS)]
        return set(json.loads(self._cluster.kubectl("--namespace", OPERATOR_NAMESPACE, *command).stdout))

    def _script(self, hoped: set[str], hosts: dict[str, str] | None = None) -> str:
        """The program that connects to the hosts of the tasks, by default the addresses of their newest pods."""
        hosts = hosts or {task: pod["status"]["podIP"] for task, pod in self._job.pods().items()}
        return f"HOSTS, PLACES, HOPED = {hosts}, {sorted(EVERYTHING)}, {sorted(hoped)}\n{_CONNECT}"


def test_a_pod_of_the_same_job_reaches_its_peers(job: TrainingJob) -> None:
    """As TensorFlow does; every step does so too."""
    pods = job.pods()
    host = f"{job.name}-worker-0.{job.name}"
    script = f"import socket\nfor port in (2222, 2223): socket.create_connection(({host!r}, port), timeout=60).close()"
    job.kubectl("exec", pods["worker-1"]["metadata"]["name"], "--", "python3", "-c", script)


@pytest.mark.slow
def test_only_a_jobs_own_pods_the_operator_and_scrapers_reach_it(
    guarded: str, new_job: NewJob, cluster: Cluster, api: Api, trainer_image: str, elsewhere: str
) -> None:
    here = {"template": {"spec": {"nodeSelector": {"kubernetes.io/hostname": guarded}}}}
    manifest = digits(trainer_image, replicaSpecs={"chief": here, "worker": here, "data": here})
    manifest["spec"]["program"] = {"entrypoint": "examples/images.py", "args": ["--epochs=100000"]}
    job = new_job(manifest)
    job.wait_up()
    job.wait_log("chief-0", "the job's data workers make the examples")
    saved = job.wait_checkpoint()
    visitors = Visitors(api, cluster, job, elsewhere, trainer_image)
    names = ("stranger", "another-job", "named-operator", "away", "away-as-the-job", "away-as-scraper")
    expected = {**dict.fromkeys(names, NOTHING), "scraper": STATUS}
    assert visitors.pods("before") == expected
    assert {task: visitors.task(task) for task in OPEN} == dict.fromkeys(OPEN, EVERYTHING)

    before = job.pods()
    for task in ("worker-0", "data-0"):
        job.kubectl("delete", "pod", before[task]["metadata"]["name"], "--wait=false")
    job.wait_replaced(before, "worker-0", "data-0")
    again = job.wait_restored(saved)
    reached = job.wait_step(again["restoredStep"] + 50)
    assert visitors.pods("after") == expected
    assert {task: visitors.task(task) for task in OPEN} == dict.fromkeys(OPEN, EVERYTHING)
    assert visitors.operator() == STATUS
    job.wait("progress that the operator has read", lambda found: found["status"]["progress"]["step"] >= reached)
