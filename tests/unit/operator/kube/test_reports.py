"""Whom the operator asks for reports."""

from __future__ import annotations

from typing import Any

import pytest

from dtjob.api.job import API_VERSION, KIND, Job
from dtjob.controller.store import Store
from dtjob.kube.reports import supervisors_to_ask
from tests.unit.operator import builders

RUNS = {**builders.running(), "podIP": "10.0.0.7"}


def asked(job: Job, pod_status: dict[str, Any] = RUNS) -> list[tuple[str, str]]:
    """Task and URL of whom is asked, where every pod of the job is in this state."""
    store = Store()
    dumped = job.model_dump(mode="json", by_alias=True, exclude_unset=True)
    store.apply({**dumped, "apiVersion": API_VERSION, "kind": KIND, "status": job.status})
    for pod in builders.all_pods(job, pod_status).values():
        store.apply(pod)
    return [(task, url) for _, task, url in supervisors_to_ask(store)]


def test_the_chief_and_the_evaluator_are_asked():
    url = "http://10.0.0.7:2300/status"
    job = builders.job(evaluator=True, network={"statusPort": 2300})
    assert asked(job) == [("chief-0", url), ("evaluator-0", url)]
    assert asked(builders.job(chief=False)) == [("worker-0", "http://10.0.0.7:2223/status")]


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_an_ended_job_is_not_asked(phase: str):
    assert asked(builders.job(status={"phase": phase})) == []


def test_an_image_without_a_supervisor_is_not_asked():
    assert asked(builders.job(program=False)) == []


@pytest.mark.parametrize("status", [builders.running(), {**builders.ended(0), "podIP": "10.0.0.7"}, {}])
def test_a_pod_that_does_not_run_or_has_no_address_is_not_asked(status: dict[str, Any]):
    assert asked(builders.job(), status) == []


def test_an_ipv6_address_stands_in_brackets():
    assert asked(builders.job(), {**builders.running(), "podIP": "fd00::7"}) == [
        ("chief-0", "http://[fd00::7]:2223/status")
    ]
