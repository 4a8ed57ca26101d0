# SPDX-License-Identifier: Apache-2.0
"""The volume sources of Kubernetes, and which of them can be written to."""

from typing import Annotated, Any

from pydantic import Field, WithJsonSchema

VOLUME_SOURCES = (
    "awsElasticBlockStore",
    "azureDisk",
    "azureFile",
    "cephfs",
    "cinder",
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "fc",
    "flexVolume",
    "flocker",
    "gcePersistentDisk",
    "glusterfs",
    "hostPath",
    "image",
    "iscsi",
    "nfs",
    "persistentVolumeClaim",
    "photonPersistentDisk",
    "portworxVolume",
    "projected",
    "quobyte",
    "rbd",
    "scaleIO",
    "secret",
    "storageos",
    "vsphereVolume",
)
"""The volume sources of Kubernetes' API (core/v1 VolumeSource), without gitRepo, which it no longer serves."""

READ_ONLY_SOURCES = ("configMap", "downwardAPI", "image", "projected", "secret")
"""Sources that a pod can only read."""
MAY_BE_READ_ONLY = (
    *("awsElasticBlockStore", "azureDisk", "azureFile", "cephfs", "cinder", "csi", "fc", "flexVolume"),
    *("gcePersistentDisk", "glusterfs", "iscsi", "nfs", "persistentVolumeClaim", "portworxVolume", "quobyte", "rbd"),
    *("scaleIO", "storageos"),
)
"""Sources with a field readOnly."""

_SOURCE_SCHEMA: dict[str, Any] = {"type": "object", "additionalProperties": True}
_WITH_FLAG: dict[str, Any] = {
    **_SOURCE_SCHEMA,
    "properties": {"readOnly": {"type": "boolean", "description": "Must not be true."}},
}
_NAME_SCHEMA = {"type": "string", "maxLength": 253, "description": "Refused: dtjob names the volume."}
VolumeSource = Annotated[
    dict[str, Any],
    WithJsonSchema(
        {
            "type": "object",
            "properties": {
                "name": _NAME_SCHEMA,
                **dict.fromkeys(VOLUME_SOURCES, _SOURCE_SCHEMA),
                **dict.fromkeys(MAY_BE_READ_ONLY, _WITH_FLAG),
            },
        }
    ),
]
"""A volume of a pod without its name: one source and its settings."""

AnyVolumeSource = Annotated[dict[str, dict[str, Any]], Field(max_length=8)]
"""A volume of a pod without its name, also from a source that can only be read. A CEL rule names the sources, so that
the definition stays small."""
