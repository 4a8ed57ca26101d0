# SPDX-License-Identifier: Apache-2.0
"""A job whose gang's API is not there yet, on a real API server: it goes on by itself once it is."""

from collections.abc import Iterator

import pytest

from tests.cluster.support.chart import says
from tests.cluster.support.gangs import VOLCANO, gang_job, serve
from tests.cluster.support.operator_process import OperatorProcess
from tests.integrations.gangs.conftest import control_plane
from tools.cluster.control_plane import ControlPlane
from tools.cluster.rest import Api


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    with control_plane((), list, lambda running: []) as running:
        yield running


def test_the_job_goes_on_once_the_api_is_there(
    cluster: ControlPlane, shared_operator: OperatorProcess, api: Api, namespace: str
) -> None:
    api.create("dtjobs", namespace, gang_job(namespace, "Volcano"))
    api.wait_for("dtjobs", namespace, "digits", says("install Volcano, or its definitions"))
    assert api.list("pods", namespace) == []
    name = serve(cluster, VOLCANO.read_text())
    try:
        api.wait("pods", namespace, lambda pods: len(pods) == 4)
        job = api.wait_for("dtjobs", namespace, "digits", lambda job: job and job["status"]["reason"] != "CannotCreate")
        assert job is not None
        assert {one["type"]: one["status"] for one in job["status"]["conditions"]}["Blocked"] == "False"
    finally:
        api.delete("dtjobs", namespace, "digits")
        cluster.kubectl("delete", "crd", name)
