# SPDX-License-Identifier: Apache-2.0
"""The calls of a cluster that is this machine, as far as they start no process."""

from pathlib import Path

import pytest

from dtjob.local.cluster import ProcessCluster
from dtjob.local.here import job_here, manifest_of
from dtjob.local.processes.addresses import Addresses
from dtjob.local.processes.command import Directories
from dtjob.objects import drift, shared
from dtjob.objects.manifest import Manifest
from tests.unit.operator import builders

JOB = job_here(builders.job(), builders.JOB_UID)


@pytest.fixture
def cluster(tmp_path: Path) -> ProcessCluster:
    directories = Directories(tmp_path / "cluster.json", tmp_path, tmp_path)
    return ProcessCluster(manifest_of(JOB), Addresses.choose(JOB), directories, lambda type_, manifest: None)


async def test_an_object_is_repaired_only_if_it_exists_with_its_uid(cluster: ProcessCluster) -> None:
    wanted = shared.service(JOB)
    other: Manifest = {**wanted, "spec": {**wanted["spec"], "selector": {"a": "b"}, "sessionAffinity": "ClientIP"}}
    stored = await cluster.create(other)
    repaired = await cluster.repair(wanted, stored["metadata"]["uid"])
    assert repaired is not None
    assert drift.drifted(wanted, repaired) == ""
    assert repaired["spec"]["sessionAffinity"] == "ClientIP"
    assert int(repaired["metadata"]["resourceVersion"]) > int(stored["metadata"]["resourceVersion"])
    assert await cluster.repair(wanted, "another") is None
    assert await cluster.repair(shared.network_policy(JOB), stored["metadata"]["uid"]) is None


async def test_a_status_that_is_written_as_it_is_makes_no_new_version(tmp_path: Path) -> None:
    heard: list[str] = []
    directories = Directories(tmp_path / "cluster.json", tmp_path, tmp_path)
    addresses = Addresses.choose(JOB)
    cluster = ProcessCluster(manifest_of(JOB), addresses, directories, lambda type_, _: heard.append(type_))
    stored = await cluster.write_status(cluster.job, {"phase": "Running"})
    heard.clear()
    assert await cluster.write_status(stored, {"phase": "Running"}) == stored
    assert heard == []
