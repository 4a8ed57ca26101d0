# SPDX-License-Identifier: Apache-2.0
"""`dtjob submit`: creates the files and the job in a cluster."""

import contextlib
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
    """Create the job, and its files, which it owns. Raises BadInput if there is a job of this name.

    The job comes first: whoever creates it has the name, and nobody else makes or removes its files. Its pods wait a
    moment for them. If the files cannot be made, the job is deleted.
    """
    files = one.config_map
    try:
        cluster.create(files, dry_run=True)  # so that no job is made for files that are refused
    except Conflict:
        _left_over(cluster, files)
    try:
        job = cluster.create(one.job)
    except Conflict:
        raise BadInput(_exists(one.name, cluster.namespace)) from None
    uid = job["metadata"]["uid"]
    owner = {"apiVersion": API_VERSION, "kind": KIND, "name": one.name, "uid": uid}
    try:
        _create_files(cluster, {**files, "metadata": {**files["metadata"], "ownerReferences": [owner]}})
    except BaseException:  # Ctrl-C too
        with contextlib.suppress(ClientError):
            cluster.delete(KIND, one.name, uid)
        raise
    return job


def _create_files(cluster: Cluster, files: Object) -> None:
    """Create the ConfigMap in place of one that a deleted job of this name has left."""
    try:
        cluster.create(files)
    except Conflict:
        if (uid := _left_over(cluster, files)) is not None:
            with contextlib.suppress(NotFound):
                cluster.delete("ConfigMap", files["metadata"]["name"], uid)
        cluster.create(files)


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


def _left_over(cluster: Cluster, files: Object) -> str | None:
    """The uid of the ConfigMap of this name, None if there is none. Raises BadInput if dtjob submit did not make it."""
    found = cluster.find("ConfigMap", name := files["metadata"]["name"])
    if found is None:
        return None
    if not MADE_BY_US.items() <= (found["metadata"].get("labels") or {}).items():
        raise BadInput(f"the namespace {cluster.namespace} has a ConfigMap {name} of somebody else; give --name")
    return str(found["metadata"]["uid"])


def _exists(name: str, namespace: str) -> str:
    return f"the namespace {namespace} has a job {name}; give --name, or delete it with dtjob delete {name}"
