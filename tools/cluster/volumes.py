# SPDX-License-Identifier: Apache-2.0
"""PersistentVolumes over directories that every node sees, and the claims that they are kept for."""

from pathlib import PurePath

from tools.cluster.rest import Object


def volume_and_claim(namespace: str, name: str, directory: PurePath, shared: bool) -> tuple[Object, Object]:
    """A PersistentVolume over a directory of the nodes, and its claim."""
    volume = f"{namespace}-{name}"
    common: Object = {"accessModes": ["ReadWriteMany" if shared else "ReadWriteOnce"], "storageClassName": ""}
    size = {"storage": "1Gi"}
    return (
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": volume},
            "spec": {
                **common,
                "capacity": size,
                "hostPath": {"path": str(directory)},
                "persistentVolumeReclaimPolicy": "Retain",
                "claimRef": {"namespace": namespace, "name": name},
            },
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"namespace": namespace, "name": name},
            "spec": {**common, "resources": {"requests": size}, "volumeName": volume},
        },
    )
