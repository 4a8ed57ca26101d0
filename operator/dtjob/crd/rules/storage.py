# SPDX-License-Identifier: Apache-2.0
"""Rules about volumes: where checkpoints are kept and the program comes from; and each mount names one of the pod."""

from dtjob.api.spec.pod_template import CHECKPOINT_VOLUME, CLUSTER_VOLUME, SHARED_MEMORY_VOLUME, SOURCE_VOLUME
from dtjob.api.spec.volume_claim import AccessMode
from dtjob.api.spec.volume_sources import MAY_BE_READ_ONLY, READ_ONLY_SOURCES, VOLUME_SOURCES
from dtjob.crd.rule import Reason, Rule

_STORAGE = "spec.checkpoint.storage"
_VOLUME = f"{_STORAGE}.volume"
_TEMPLATE = f"{_STORAGE}.volumeClaimTemplate"
_SOURCE = "spec.program.source"
_BUCKET = "^(gs|s3)://[^/]+"


STORAGE_RULES = (
    Rule(
        _STORAGE,
        "[has(self.volumeClaimTemplate), has(self.volume), has(self.uri)].filter(x, x).size() == 1",
        "set exactly one of volumeClaimTemplate, for a claim that the operator creates, volume, such as "
        "{persistentVolumeClaim: {claimName: digits}}, and uri, such as gs://BUCKET/PATH",
    ),
    Rule(
        _STORAGE,
        f"!has(self.uri) || self.uri.matches('{_BUCKET}')",
        "give a bucket as gs://BUCKET/PATH or s3://BUCKET/PATH, or use volume for a directory",
        "uri",
    ),
    Rule(
        _STORAGE,
        "!has(self.mountPath) || self.mountPath.matches('^/[^:]*[^/:][^:]*$')",
        "must be an absolute path below / without a colon, such as /checkpoints",
        "mountPath",
    ),
    Rule(
        _STORAGE,
        "!has(self.subPath) || (!self.subPath.startsWith('/') && !('..' in self.subPath.split('/')))",
        "must be a path relative to the volume's root without '..', such as team-a/digits",
        "subPath",
    ),
)


_WRITABLE = [one.value for one in AccessMode if one is not AccessMode.READ_MANY]
CLAIM_RULES = (
    Rule(
        f"{_TEMPLATE}.spec",
        f"self.accessModes.exists(m, m in {_WRITABLE})",
        "checkpoints are written to this volume: add ReadWriteOnce, or ReadWriteMany for pods on several nodes",
        "accessModes",
    ),
    Rule(
        f"{_TEMPLATE}.spec",
        "'storage' in self.resources.requests",
        "set resources.requests.storage, the size of the volume, such as 10Gi",
        "resources.requests",
        Reason.REQUIRED,
    ),
    Rule(
        f"{_TEMPLATE}.spec",
        "!has(self.volumeMode) || self.volumeMode != 'Block'",
        "checkpoints are files: remove volumeMode, or set Filesystem",
        "volumeMode",
    ),
)
SOURCE_RULES = (
    Rule(
        _SOURCE,
        "has(self.configMap) != has(self.volume)",
        "set exactly one of configMap, such as {name: train-source}, and volume, such as "
        "{persistentVolumeClaim: {claimName: code}}",
    ),
    Rule(
        _SOURCE,
        "!has(self.path) || (!self.path.startsWith('/') && !('..' in self.path.split('/')))",
        "must be a folder of the volume without '..', such as team-a/digits",
        "path",
    ),
    Rule(
        f"{_SOURCE}.volume",
        f"self.size() == 1 && self.all(s, s in {list(VOLUME_SOURCES)})",
        "a volume is exactly one volume source, such as {persistentVolumeClaim: {claimName: code}} or "
        "{image: {reference: REGISTRY/CODE:1}}",
    ),
)


VOLUME_RULES = (
    Rule(
        _VOLUME,
        f"[{', '.join(f'has(self.{source})' for source in VOLUME_SOURCES)}].filter(x, x).size() == 1",
        "a volume is exactly one volume source, such as {persistentVolumeClaim: {claimName: digits}}",
    ),
    Rule(
        _VOLUME,
        "!has(self.name)",
        "the name of the volume belongs to dtjob: remove it",
        "name",
        Reason.FORBIDDEN,
    ),
    Rule(
        _VOLUME,
        " && ".join(f"!has(self.{source})" for source in READ_ONLY_SOURCES),
        "the volume source is read-only, and checkpoints are written: use another one, such as "
        "{persistentVolumeClaim: {claimName: digits}}",
        reason=Reason.FORBIDDEN,
    ),
    Rule(
        _VOLUME,
        " && ".join(
            f"(!has(self.{one}) || !has(self.{one}.readOnly) || !self.{one}.readOnly)" for one in MAY_BE_READ_ONLY
        ),
        "checkpoints are written to this volume: remove readOnly",
        reason=Reason.FORBIDDEN,
    ),
)


OURS = (CHECKPOINT_VOLUME, CLUSTER_VOLUME, SHARED_MEMORY_VOLUME, SOURCE_VOLUME)
"""dtjob's own volumes, which not every pod has: `pod_problems.py` looks more closely."""
NO_VOLUME = "a volumeMount names a volume that is not there: add the volume, or correct the name in the volumeMount"


def _mounted(containers: str) -> str:
    """CEL: all that these containers mount is there."""
    there = f"m.name in {list(OURS)} || has(self.volumes) && self.volumes.exists(v, v.name == m.name)"
    mounts = f"!has(c.volumeMounts) || c.volumeMounts.all(m, {there})"
    return f"(!has(self.{containers}) || self.{containers}.all(c, {mounts}))"


MOUNT_RULES = (
    Rule(
        "spec.replicaSpecs.*.template.spec",
        f"{_mounted('containers')} && {_mounted('initContainers')}",
        NO_VOLUME,
        "volumes",
    ),
)
