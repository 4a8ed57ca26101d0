# SPDX-License-Identifier: Apache-2.0
"""Pods that cannot start: the job's status says why, in words."""

from tests.cluster.support.jobs import columns
from tests.e2e.jobs.conftest import NewJob
from tests.e2e.jobs.support.training_job import digits
from tools.cluster.rest import Object

ABSENT = "127.0.0.1:1/no-such-image:1"
"""Where nobody answers, and at once: a name that does not resolve keeps the kubelet waiting, at the pod's end too."""


def test_an_image_that_does_not_exist_is_named_in_the_status(new_job: NewJob) -> None:
    job = new_job(digits(ABSENT))

    def told(found: Object) -> bool:
        message = found["status"].get("message", "")
        return "chief-0 waits: " in message and "ImagePull" in message and ABSENT in message

    found = job.wait(f"a message that names the image {ABSENT}", told)
    assert found["status"]["phase"] == "Pending"
    assert found["status"]["restarts"]["total"] == 0
    assert columns(job.kubectl)["PHASE"] == "Pending"
    described = job.kubectl("describe", "dtjob", job.name).stdout
    assert ABSENT in described


def test_a_request_for_more_memory_than_any_node_has_is_named_in_the_status(
    new_job: NewJob, trainer_image: str
) -> None:
    replicas: Object = {"chief": {"resources": {"requests": {"memory": "900Ti"}}}, "worker": {"replicas": 1}}
    job = new_job(digits(trainer_image, replicaSpecs=replicas))

    def told(found: Object) -> bool:
        message = found["status"].get("message", "")
        return "chief-0 waits: Unschedulable" in message and "Insufficient memory" in message

    assert job.wait("a message that says which resource is short", told)["status"]["phase"] == "Pending"
