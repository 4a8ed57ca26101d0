"""Where a job's rendezvous is."""

from __future__ import annotations

from typing import Any

import pytest

from dtjob.objects.rendezvous import RENDEZVOUS_PORT, rendezvous_port
from dtjob.plan.children import Children
from dtjob.plan.plan import plan
from tests.unit.operator import builders


def sidecar(*ports: Any, among: str = "containers", **more: Any) -> dict[str, Any]:
    container = {"name": "proxy", "ports": list(ports), **more}
    return {"chief": {}, "worker": {"count": 2, "template": {"spec": {among: [container]}}}}


@pytest.mark.parametrize(
    ("spec", "port"),
    [
        ({}, 2224),
        ({"network": {"statusPort": 2224}}, 2225),
        ({"network": {"port": 2225, "statusPort": 2224}}, 2226),
        ({"replicas": sidecar({"containerPort": 2224})}, 2225),
        ({"replicas": sidecar({"containerPort": 2224}, among="initContainers", restartPolicy="Always")}, 2225),
        ({"replicas": sidecar()}, 2224),
        ({"program": None}, None),
    ],
)
def test_it_is_on_a_port_that_nothing_else_of_the_job_has(spec: dict[str, Any], port: int | None) -> None:
    base = builders.job()
    job = base.model_validate(
        {**base.model_dump(by_alias=True), "spec": {**base.spec.model_dump(by_alias=True, exclude_unset=True), **spec}}
    )
    assert rendezvous_port(job) == port


def test_a_job_keeps_the_port_that_it_began_with() -> None:
    status = plan(builders.job(), Children(), builders.NOW).status
    assert status is not None
    assert status["rendezvousPort"] == RENDEZVOUS_PORT
    assert rendezvous_port(builders.job(status={**status, "rendezvousPort": 2230})) == 2230


def test_a_job_of_an_earlier_operator_stays_on_its_status_port() -> None:
    """Its pods look for the rendezvous there, those that are replaced too."""
    job = builders.job(status={"phase": "Running"})
    assert rendezvous_port(job) is None
    chief = builders.pod(job, "chief-0")
    names = {one["name"] for one in chief["spec"]["containers"][0]["env"]}
    assert "DTJOB_RENDEZVOUS" in names
    assert "DTJOB_RENDEZVOUS_ADDRESS" not in names
    status = plan(job, Children(), builders.NOW).status
    assert status is not None
    assert "rendezvousPort" not in status
