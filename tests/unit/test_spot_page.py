# SPDX-License-Identifier: Apache-2.0
"""docs/tutorials/spot-nodes.md: its job survives the loss of spot nodes as the page says."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from dtjob.api.spec.replica_specs import Role
from dtjob.crd.answers.problems import problems, to_job
from dtjob.objects.pod.pod import pod
from dtjob.objects.topology import Task
from tests.unit.operator import builders
from tests.unit.operator.simulation.operator import World

PAGE = (Path(__file__).parents[2] / "docs" / "tutorials" / "spot-nodes.md").read_text()
(MANIFESTS,) = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.M | re.S)
JOB = yaml.safe_load(MANIFESTS)


@pytest.fixture
def world() -> Iterator[World]:
    """A cluster in which all tasks of the page's job run."""
    whole = to_job(JOB)
    whole.metadata.uid, whole.metadata.resource_version, whole.metadata.generation = builders.JOB_UID, "1", 1
    found = World(whole)
    found.run(1)
    set_running(found)
    yield found
    found.close()


def set_running(world: World) -> None:
    """Let all pods run."""
    for name in world.pods:
        world.cluster.change("Pod", name, lambda pod: pod.update(status=builders.running()))
    world.run(1)


def test_the_job_is_taken_and_brings_its_claim() -> None:
    assert problems(JOB) == []
    assert "volumeClaimTemplate" in JOB["spec"]["checkpoint"]["storage"]


def test_a_drained_worker_is_replaced_and_counted_as_a_disruption(world: World) -> None:
    assert world.job.status["phase"] == "Running"
    status = builders.disrupted(when=world.now())
    world.cluster.change("Pod", "spot-worker-2-0", lambda pod: pod.update(status=status))
    world.run(20)
    assert "spot-worker-2-1" in world.pods
    set_running(world)
    found: dict[str, Any] = world.job.status
    assert found["phase"] == "Running"
    assert found["restarts"]["causes"] == {"Disruption": 1}


def test_a_save_fits_into_the_notice_and_pods_are_where_the_page_says() -> None:
    whole = to_job(JOB)
    whole.metadata.uid, whole.metadata.resource_version, whole.metadata.generation = builders.JOB_UID, "1", 1
    chief, worker = (pod(whole, Task(role, 0), 0)["spec"] for role in (Role.CHIEF, Role.WORKER))
    assert chief["terminationGracePeriodSeconds"] < 30
    assert chief["nodeSelector"] != worker["nodeSelector"]
    assert [one["key"] for one in worker["tolerations"] if "example.com" in one["key"]] == ["example.com/spot"]
