# SPDX-License-Identifier: Apache-2.0
"""Who reaches a job's pods: TensorFlow's port has no authentication, so only pods of the same job may."""

import pytest

from tests.e2e.jobs.support.training_job import TrainingJob
from tests.e2e.jobs.support.volumes import output, python_pod
from tools.cluster.cluster import Cluster
from tools.cluster.rest import Api, Object

_CONNECT = """
import socket
for port in {ports}:
    try:
        socket.create_connection(({address!r}, port), timeout=5).close()
        print(port, "reached")
    except TimeoutError:
        print(port, "silent")
"""


def reached(api: Api, cluster: Cluster, namespace: str, image: str, address: str, name: str, **labels: str) -> str:
    """What a pod with these labels finds at the TensorFlow port and at the status port."""
    script = _CONNECT.format(ports=(2222, 2223), address=address)
    return output(api, cluster, namespace, python_pod(name, image, script, **labels))


def test_a_pod_of_the_same_job_reaches_its_peers(job: TrainingJob, cluster: Cluster) -> None:
    """By the name that TF_CONFIG has, as TensorFlow does; every step does so too."""
    script = _CONNECT.format(ports=(2222, 2223), address=f"{job.name}-worker-0.{job.name}")
    worker = job.pods()["worker-1"]["metadata"]["name"]
    said = job.kubectl("exec", worker, "--", "python3", "-c", script).stdout
    assert said == "2222 reached\n2223 reached\n"


def test_a_pod_of_no_job_does_not_reach_a_jobs_pods(
    job: TrainingJob, cluster: Cluster, api: Api, trainer_image: str
) -> None:
    if not cluster.enforces_network_policies:
        pytest.skip(f"{cluster.name} stores NetworkPolicies and does not enforce them: no traffic test")
    chief: Object = job.pods()["chief-0"]
    address = chief["status"]["podIP"]
    nothing = "2222 silent\n2223 silent\n"
    assert reached(api, cluster, job.namespace, trainer_image, address, "stranger") == nothing
    # A name like the operator's opens nothing outside the operator's own namespace.
    label = {"app.kubernetes.io/name": "dtjob"}
    assert reached(api, cluster, job.namespace, trainer_image, address, "operator", **label) == nothing
