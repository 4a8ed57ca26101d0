# SPDX-License-Identifier: Apache-2.0
"""Create a job in a cluster, with its files if it was made of a script."""

import contextlib
from collections.abc import Mapping
from typing import Any

from dtjob.api.names import API_VERSION, KIND
from dtjob.bad_input import BadInput
from dtjob.client.cluster import Cluster
from dtjob.client.errors import ClientError, Conflict, NotFound, NotReached
from dtjob.client.signals import signals_as_exceptions
from dtjob.client.verbs.words import is_being_deleted
from dtjob.manifests.package import MADE_BY_US
from dtjob.manifests.submitted import Made

Object = dict[str, Any]
_OF_A_SERVER = ("uid", "resourceVersion", "generation")
"""Metadata of a job that was read, as by `kubectl get -o yaml`. No new job has them."""


def of_namespace(cluster: Cluster, manifest: Object, wanted: str | None) -> Cluster:
    """`cluster`, with the namespace of the manifest if the manifest names one. `wanted`: the namespace that the user
    asks for. Raises BadInput if the two differ."""
    metadata = manifest["metadata"]
    its = str(metadata.get("namespace") or cluster.namespace)
    if wanted not in (None, its):
        name = metadata.get("name") or metadata.get("generateName")
        raise BadInput(f"{name}: its namespace is {its}, and not {wanted}, which was asked for; change one of them")
    return Cluster(cluster.connection, its)


def create(cluster: Cluster, manifest: Object) -> Object:
    """Create the job of a manifest. Returns it as it is stored. Raises Conflict if there is a job of this name."""
    metadata = {name: one for name, one in manifest["metadata"].items() if name not in _OF_A_SERVER}
    name = str(metadata.get("name") or metadata.get("generateName"))
    try:
        return cluster.create({**manifest, "metadata": metadata})
    except Conflict:
        found = None
        with contextlib.suppress(ClientError):
            found = cluster.find(KIND, name)
        said = f"the namespace {cluster.namespace} has a job {name}"
        if found is not None and is_being_deleted(found):
            said += f", which is being deleted; dtjob wait {name} --for Deleted says when it is gone"
        else:
            said += f"; choose another name, or run dtjob delete {name}"
        raise Conflict(said, 409, "AlreadyExists") from None
    except NotReached as error:
        raise NotReached(f"{error}; dtjob status {name} says whether the job was created") from None


def submit(cluster: Cluster, one: Made) -> Object:
    """Create the job of a script, and its files, which it owns. Returns the job. Raises Conflict as `create`.

    The job comes first: whoever creates it has the name, and nobody else makes or removes its files. Its pods wait a
    moment for them. If the files cannot be made, the job is deleted.
    """
    files = one.config_map
    try:
        cluster.create(files, dry_run=True)  # so that no job is made for files that are refused
    except Conflict:
        _left_over(cluster, files)
    with signals_as_exceptions():
        try:
            job = create(cluster, one.job)
        except NotReached as error:
            raise NotReached(f"{error}; if so, delete the job and submit again, as its files are missing") from None
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


def _left_over(cluster: Cluster, files: Mapping[str, Any]) -> str | None:
    """The uid of the ConfigMap of this name, None if there is none. Raises Conflict if `submit` has not made it."""
    found = cluster.find("ConfigMap", name := files["metadata"]["name"])
    if found is None:
        return None
    if not MADE_BY_US.items() <= (found["metadata"].get("labels") or {}).items():
        said = f"the namespace {cluster.namespace} has a ConfigMap {name} of somebody else; choose another name"
        raise Conflict(said, 409, "AlreadyExists")
    return str(found["metadata"]["uid"])
