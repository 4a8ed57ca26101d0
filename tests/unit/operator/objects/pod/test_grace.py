# SPDX-License-Identifier: Apache-2.0
"""One grace period: what the pod has, what its supervisor is told, and what a save gets of it."""

from typing import Any

import pytest
from pydantic import ValidationError

from dtjob.api.job import Job
from dtjob.objects.pod.environment import pod_seconds, seconds_after_sigterm
from dtjob.objects.pod.pod import pod
from tests.unit.operator import builders

SLEEP = {"preStop": {"sleep": {"seconds": 20}}}


def with_template(**checkpoint: Any) -> Any:
    def made(lifecycle: dict[str, Any] | None = None, container: str = "tensorflow", **spec: Any) -> Job:
        spec["containers"] = [{"name": container, "lifecycle": lifecycle}]
        replicas = {"chief": {}, "worker": {"replicas": 2, "template": {"spec": spec}}}
        return builders.job(replicaSpecs=replicas, **checkpoint)

    return made


saving = with_template(checkpoint={"storage": {"volume": {"emptyDir": {}}}, "saveTimeoutSeconds": 90})


def numbers(job: Job, task: str) -> tuple[int, int]:
    """Of the pod as it is made, and what its supervisor is told."""
    made = pod(job, builders.task(task), 0)["spec"]
    training = next(one for one in made["containers"] if one["name"] == "tensorflow")
    told = {one["name"]: one.get("value") for one in training["env"]}["DTJOB_GRACE_SECONDS"]
    return made["terminationGracePeriodSeconds"], int(told)


@pytest.mark.parametrize(("value", "wanted"), [(7, 7), (600, 600), (0, 0), (None, 90)])
def test_the_supervisor_knows_the_grace_period_that_its_pod_has(value: int | None, wanted: int) -> None:
    """Told a longer one, it would be killed before it has ended what still runs."""
    job = saving(terminationGracePeriodSeconds=value)
    assert numbers(job, "worker-0") == (wanted, wanted)
    assert numbers(job, "chief-0") == (90, 90)


def test_a_sleep_before_sigterm_is_added_to_the_pods_time_and_not_taken_from_the_saves() -> None:
    """The kubelet sends SIGTERM when the hook has ended, and SIGKILL when the grace period has."""
    assert numbers(saving(SLEEP), "worker-0") == (110, 90)
    assert numbers(saving(SLEEP, terminationGracePeriodSeconds=150), "worker-0") == (150, 130)
    assert numbers(saving(SLEEP), "chief-0") == (90, 90)


def test_a_kubelet_leaves_two_seconds_however_long_the_hook_takes() -> None:
    assert numbers(saving(SLEEP, terminationGracePeriodSeconds=20), "worker-0") == (20, 2)


@pytest.mark.parametrize(
    ("hook", "container"),
    [({"postStart": {"exec": {}}}, "tensorflow"), ({"preStop": {"exec": {}}}, "tensorflow"), (SLEEP, "log")],
)
def test_only_a_sleep_of_the_training_container_counts(hook: dict[str, Any], container: str) -> None:
    """A job of an earlier release may have another hook, of unknown length; sidecars are ended beside it."""
    assert numbers(saving(hook, container), "worker-0") == (90, 90)


def test_without_checkpoints_there_is_nothing_to_save() -> None:
    assert pod_seconds(builders.job(), builders.task("chief-0")) == 30
    assert seconds_after_sigterm(with_template()(SLEEP), builders.task("worker-0")) == 30


def test_a_grace_period_that_is_no_number_is_refused_with_its_field() -> None:
    with pytest.raises(ValidationError, match="terminationGracePeriodSeconds"):
        saving(terminationGracePeriodSeconds="soon")
