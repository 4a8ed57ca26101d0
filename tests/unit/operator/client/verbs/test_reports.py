# SPDX-License-Identifier: Apache-2.0
"""What the supervisors of a job's tasks say, by ports that are forwarded to their pods."""

from typing import Any

import pytest

from dtjob.client import streams
from dtjob.client.cluster import Cluster
from dtjob.client.errors import ClientError, NotReached
from dtjob.client.verbs.reports import read_reports, status_port
from tests.unit.operator.client.verbs.jobs import job, pod

ANSWERS: dict[str, bytes | ClientError] = {
    "digits-chief-0-0": b'{"attempt": 0, "step": 7}',
    "digits-worker-0-1": b'{"attempt": 0, "step": 6}',
    "digits-worker-1-0": NotReached("digits-worker-1-0: port 2223 does not answer"),
    "digits-worker-2-0": b"no report",
}


@pytest.fixture(autouse=True)
def ports(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int, str]]:
    asked = []

    async def answer(_: Cluster, name: str, port: int, path: str) -> bytes:
        asked.append((name, port, path))
        found = ANSWERS[name]
        if isinstance(found, ClientError):
            raise found
        return found

    monkeypatch.setattr(streams, "answer", answer)
    return asked


def read(cluster: Cluster, *pods: dict[str, Any]) -> tuple[dict[str, Any], str]:
    found, why = read_reports(cluster, job(), pods)
    return dict(found), why


def test_each_task_that_runs_is_asked(cluster: Cluster, ports: list[tuple[str, int, str]]) -> None:
    waits = pod("worker-3", state={"waiting": {}})
    assert read(cluster, pod("chief-0"), waits) == ({"chief-0": {"attempt": 0, "step": 7}}, "")
    assert ports == [("digits-chief-0-0", 2223, "/status")]


def test_a_task_that_cannot_be_asked_is_missing_with_the_reason(cluster: Cluster) -> None:
    found, why = read(cluster, pod("chief-0"), pod("worker-1"))
    assert (list(found), why) == (["chief-0"], "digits-worker-1-0: port 2223 does not answer")
    assert "no JSON" in read(cluster, pod("worker-2"))[1]


def test_the_report_of_another_attempt_does_not_count(cluster: Cluster) -> None:
    assert read(cluster, pod("worker-0", 1)) == ({}, "digits-worker-0-1: another attempt answers there")


def test_a_job_without_a_program_has_no_supervisors(cluster: Cluster, ports: list[tuple[str, int, str]]) -> None:
    own = {**job(), "spec": {"strategy": "Default"}}
    assert read_reports(cluster, own, [pod("chief-0")]) == ({}, "")
    assert not ports


def test_the_port_is_that_of_the_manifest() -> None:
    assert status_port({"spec": {"network": {"statusPort": 3000}}}) == 3000
    assert status_port({"spec": {}}) == 2223
