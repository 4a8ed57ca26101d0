# SPDX-License-Identifier: Apache-2.0
"""`dtjob submit`: creates the files and the job in a cluster."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dtjob.api.names import API_VERSION, KIND
from dtjob.cli.bad_input import BadInput
from dtjob.cli.submit.package import MADE_BY_US
from dtjob.cli.submit.submitted import Made
from dtjob.client.cluster import Cluster
from dtjob.client.errors import ClientError, Conflict, NotFound

Object = dict[str, Any]


def submit(cluster: Cluster, one: Made) -> Object:
    """Create the files and the job, which then owns them. Raises BadInput if there is a job of this name.

    The ConfigMap comes first, so that no pod waits for it. If the job is refused, the ConfigMap is deleted.
    """
    if cluster.find(KIND, one.name) is not None:
        raise BadInput(_exists(one.name, cluster.namespace))
    files = one.config_map["metadata"]["name"]
    try:
        cluster.create(one.config_map)
    except Conflict:
        _check_is_left_over(cluster, files)
        cluster.delete("ConfigMap", files)
        cluster.create(one.config_map)
    with _removed_after_an_error(cluster, files):
        try:
            job = cluster.create(one.job)
        except Conflict:
            raise BadInput(_exists(one.name, cluster.namespace)) from None
    owner = {"apiVersion": API_VERSION, "kind": KIND, "name": one.name, "uid": job["metadata"]["uid"]}
    cluster.patch("ConfigMap", files, {"metadata": {"ownerReferences": [owner]}})
    return job


def submit_manifest(cluster: Cluster, file: Path) -> tuple[Object, list[str]]:
    """Create the one job of a manifest's file. Returns it, and what it may not be meant to do. Raises BadInput."""
    from dtjob.cli.job_file import checked  # with these, 0.05 s that a script does not need
    from dtjob.cli.reading.stream import read_file
    from dtjob.cli.validate import warnings_of

    found = read_file(file)
    jobs = [one for one in found if isinstance(one.content, dict) and one.content.get("kind") == KIND]
    if len(jobs) != 1:
        raise BadInput(f"{file}: has {len(jobs)} {KIND}s; give a file with one")
    others = len(found) - 1
    if others:
        raise BadInput(f"{file}: has {others} objects of other kinds; apply the file with kubectl apply -f {file}")
    warnings = warnings_of(checked(jobs[0].content, str(file)), jobs[0].content)
    try:
        return cluster.create(jobs[0].content), warnings
    except Conflict:
        raise BadInput(_exists(str(jobs[0].content["metadata"].get("name")), cluster.namespace)) from None


def _check_is_left_over(cluster: Cluster, files: str) -> None:
    """Raise BadInput if this ConfigMap is not one of dtjob submit, whose job is gone."""
    found = cluster.get("ConfigMap", files)["metadata"].get("labels") or {}
    if not MADE_BY_US.items() <= found.items():
        raise BadInput(f"the namespace {cluster.namespace} has a ConfigMap {files} of somebody else; give --name")


def _exists(name: str, namespace: str) -> str:
    return f"the namespace {namespace} has a job {name}; give --name, or delete it with dtjob delete {name}"


@contextlib.contextmanager
def _removed_after_an_error(cluster: Cluster, files: str) -> Iterator[None]:
    try:
        yield
    except (ClientError, BadInput):
        with contextlib.suppress(ClientError, NotFound):
            cluster.delete("ConfigMap", files)
        raise
