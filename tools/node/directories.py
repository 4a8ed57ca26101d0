# SPDX-License-Identifier: Apache-2.0
"""A default StorageClass for the bare node: each claim gets a directory of the host's, which every node sees."""

import contextlib
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from tools.cluster.existing import DEFAULT_CLASS
from tools.cluster.rest import Api, ApiError, Object

CLASS = "standard"
PROVISIONER = "dtjob.dev/directories"
_ROUND_SECONDS = 60.0


class Provisioner:
    """Makes a volume for each claim of the class, and removes it after the claim; from `with` to its end."""

    def __init__(self, api: Api, top: Path) -> None:
        self._api = api
        self._top = top
        self._ended = threading.Event()
        self._interrupt: Callable[[], None] = lambda: None
        self._thread = threading.Thread(target=self._run, name="directories", daemon=True)

    def __enter__(self) -> Self:
        self._api.create("storageclasses", None, storage_class())
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        with contextlib.suppress(RuntimeError):  # the watch has just ended by itself
            self._interrupt()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.is_set():
            try:
                self._round()
            except (ApiError, Api.UNREACHABLE):  # a restart of the API server, or somebody was quicker
                self._ended.wait(1.0)

    def _round(self) -> None:
        listing = self._api.call("GET", "api/v1/persistentvolumeclaims")
        claims = {claim["metadata"]["uid"] for claim in listing["items"]}
        for volume in self._api.list("persistentvolumes"):
            spec = volume["spec"]
            if spec.get("storageClassName") == CLASS and spec["claimRef"]["uid"] not in claims:
                self._remove(spec["claimRef"]["uid"])
        for claim in listing["items"]:
            self._serve(claim)
        version = listing["metadata"]["resourceVersion"]
        for kind, claim in self._api.watch("persistentvolumeclaims", None, version, _ROUND_SECONDS, self._opened):
            if kind == "ERROR" or self._ended.is_set():
                return
            if kind == "DELETED":
                self._remove(claim["metadata"]["uid"])
            else:
                self._serve(claim)

    def _opened(self, interrupt: Callable[[], None]) -> None:
        self._interrupt = interrupt
        if self._ended.is_set():
            self._interrupt()

    def _serve(self, claim: Object) -> None:
        """Make the claim's volume, where it waits for one of ours."""
        if claim["spec"].get("storageClassName") != CLASS or claim["spec"].get("volumeName"):
            return
        directory = self._top / claim["metadata"]["uid"]
        directory.mkdir(parents=True, exist_ok=True)
        directory.chmod(0o777)  # the kubelet gives no hostPath volume to the pod's group
        try:
            self._api.create("persistentvolumes", None, volume_for(claim, directory))
        except ApiError as error:
            if error.status != 409:  # made already; the claim is not bound yet
                raise

    def _remove(self, uid: str) -> None:
        """Remove the volume of a claim that is gone, and its directory."""
        if (self._top / uid).exists():
            self._api.delete("persistentvolumes", None, f"pvc-{uid}")
            with contextlib.suppress(OSError):
                shutil.rmtree(self._top / uid)


def storage_class() -> Object:
    """The default StorageClass."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": CLASS, "annotations": {DEFAULT_CLASS: "true"}},
        "provisioner": PROVISIONER,
        "reclaimPolicy": "Retain",  # kube-controller-manager would delete none but its own
    }


def volume_for(claim: Object, directory: Path) -> Object:
    """The PersistentVolume for one claim."""
    metadata, spec = claim["metadata"], claim["spec"]
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"pvc-{metadata['uid']}", "annotations": {"pv.kubernetes.io/provisioned-by": PROVISIONER}},
        "spec": {
            "storageClassName": CLASS,
            "accessModes": spec["accessModes"],
            "capacity": spec["resources"]["requests"],
            "hostPath": {"path": str(directory)},
            "persistentVolumeReclaimPolicy": "Retain",
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                **{key: metadata[key] for key in ("namespace", "name", "uid", "resourceVersion")},
            },
        },
    }
