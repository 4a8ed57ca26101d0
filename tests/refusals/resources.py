# SPDX-License-Identifier: Apache-2.0
"""Requests, limits and mounts that no pod can have; and what the definition takes and `dtjob validate` refuses."""

from typing import Any

from tests.refusals.manifests import (
    CHECKPOINT,
    CLAIM,
    CLAIM_TEMPLATE,
    Manifest,
    bad,
    changed,
    job,
    pod,
    storage,
    training,
)

WORKER = "spec.replicaSpecs.worker"
SPEC = f"{WORKER}.template.spec"
SIDECAR = {"name": "log", "image": "a"}


def resources(**fields: Any) -> Manifest:
    """A job whose workers have these resources."""
    return job(replicaSpecs={"chief": {}, "worker": {"resources": fields}})


def mounts(name: str) -> list[Manifest]:
    """The mounts of a container that mounts this volume."""
    return [{"name": name, "mountPath": "/data"}]


ABOVE: dict[str, Manifest] = {
    "cpu": {"requests": {"cpu": 2}, "limits": {"cpu": "1500m"}},
    "memory": {"requests": {"memory": "1Gi"}, "limits": {"memory": "1G"}},
    "one-of-several": {"requests": {"cpu": 1, "memory": "2Gi"}, "limits": {"cpu": 1, "memory": "1Gi"}},
}
WITHOUT_LIMIT: dict[str, Manifest] = {
    "gpu": {"requests": {"nvidia.com/gpu": 1}},
    "gpu-beside-other-limits": {"requests": {"nvidia.com/gpu": 1}, "limits": {"cpu": 1}},
    "less-gpu-than-the-limit": {"requests": {"nvidia.com/gpu": 1}, "limits": {"nvidia.com/gpu": 2}},
    "huge-pages": {"requests": {"hugepages-2Mi": "4Mi", "cpu": 1}},
}
WITHIN: dict[str, Manifest] = {
    "equal-in-another-form": {"requests": {"cpu": "1000m", "memory": "1Gi"}, "limits": {"cpu": 1, "memory": "1024Mi"}},
    "less": {"requests": {"cpu": "0.5"}, "limits": {"cpu": 1, "memory": "1Gi"}},
    "without-limit": {"requests": {"cpu": 1, "ephemeral-storage": "1Gi", "example.kubernetes.io/a": 1}},
    "gpu-alone": {"limits": {"nvidia.com/gpu": 1}},
    "gpu-twice": {"requests": {"nvidia.com/gpu": 1}, "limits": {"nvidia.com/gpu": "1", "cpu": 2}},
}

RESOURCES = [
    *(
        bad(f"request-above-limit-{name}", resources(**amounts), f"{WORKER}.resources.requests", "lower the request")
        for name, amounts in ABOVE.items()
    ),
    *(
        bad(f"request-needs-limit-{name}", resources(**amounts), f"{WORKER}.resources.requests", "need a limit")
        for name, amounts in WITHOUT_LIMIT.items()
    ),
    *(
        bad(
            f"mount-of-no-volume-in-{containers}",
            job(replicaSpecs=pod(**{containers: [{**SIDECAR, "volumeMounts": mounts("dataa")}], **volumes})),
            f"{SPEC}.volumes",
            "a volumeMount names a volume that is not there",
        )
        for containers, volumes in (
            ("containers", {"volumes": [{"name": "data", "emptyDir": {}}]}),
            ("initContainers", {}),
        )
    ),
    *(
        bad(
            f"volume-{name}",
            storage(volume=volume),
            f"spec.checkpoint.storage.volume.{field}",
            f"must be of type {kind}",
            or_says=(f"spec.checkpoint.storage.volume.{field}: {says}",),
        )
        for name, volume, field, kind, says in (
            (
                "source-as-a-list",
                {"persistentVolumeClaim": [{"claimName": "digits"}]},
                *("persistentVolumeClaim", "object", "must be a mapping (names with values), not a list"),
            ),
            (
                "flag-as-a-mapping",
                {"csi": {"driver": "a", "readOnly": {}}},
                *("csi.readOnly", "boolean", "must be true or false, not a mapping"),
            ),
        )
    ),
    bad(
        "image-left-empty",
        job(replicaSpecs=pod(containers=[{"name": "log", "image": ""}])),
        f"{SPEC}.containers[0].image",
        or_says=(f"{SPEC}.containers[0].image: must not be empty",),
    ),
]

RESOURCES_TAKEN: dict[str, Manifest] = {
    **{f"resources-{name}": resources(**amounts) for name, amounts in WITHIN.items()},
    **{f"resources-of-a-container-{name}": job(replicaSpecs=training(resources=one)) for name, one in WITHIN.items()},
    **{
        f"resources-of-a-container-{name}-left-empty": job(replicaSpecs=training(resources=one))
        for name, one in {
            "requests": {"requests": None},
            "limits": {"limits": None, "requests": {"cpu": 1}},
            "amount": {"limits": {"cpu": None}, "requests": {"cpu": 1, "example.com/gpu": None}},
        }.items()
    },
    "cpu-of-a-container-without-quotes": job(replicaSpecs=training(resources={"limits": {"cpu": 0.5}})),
    "mounts": job(
        replicaSpecs=pod(
            volumes=[{"name": "data", "emptyDir": {"sizeLimit": 1}}],
            containers=[{"name": "tensorflow", "volumeMounts": mounts("data")}],
            initContainers=[{**SIDECAR, "volumeMounts": mounts("data")}],
        )
    ),
    "mounts-of-our-volumes": changed(
        storage(volume=CLAIM, mountOn="All"),
        *("spec", "replicaSpecs", "worker"),
        to={"template": {"spec": {"containers": [{**SIDECAR, "volumeMounts": mounts("checkpoints")}]}}},
    ),
    "other-parts-of-a-pod": job(
        replicaSpecs=pod(
            securityContext={"runAsUser": 1000, "sysctls": [{"name": "a", "value": "1"}]},
            tolerations=[{"key": "gpu", "operator": "Exists", "tolerationSeconds": 10}],
            containers=[
                {
                    **SIDECAR,
                    "livenessProbe": {"httpGet": {"port": "http", "path": "/"}},
                    "readinessProbe": {"tcpSocket": {"port": 80}},
                    "stdin": None,
                }
            ],
        )
    ),
}


def _in_a_container(**fields: Any) -> Manifest:
    return job(replicaSpecs=pod(containers=[{**SIDECAR, **fields}]))


ONLY_VALIDATE = [
    *(
        bad(f"container-{name}", _in_a_container(resources=amounts), f"{SPEC}.containers[0].resources.requests", says)
        for all_of, says in ((ABOVE, "lower the request"), (WITHOUT_LIMIT, "need a limit"))
        for name, amounts in all_of.items()
    ),
    bad(
        "container-amount-of-no-form",
        _in_a_container(resources={"limits": {"memory": "16GB"}}),
        f"{SPEC}.containers[0].resources.limits.memory: must be a quantity",
        "not '16GB'",
    ),
    *(
        bad(f"misspelt-{field}", manifest, f"{path}.{field}: is an unknown field; did you mean {meant}?")
        for path, field, meant, manifest in (
            (f"{SPEC}.containers[0]", "resouces", "resources", _in_a_container(resouces={"limits": {"cpu": 1}})),
            (SPEC, "nodeselector", "nodeSelector", job(replicaSpecs=pod(nodeselector={"disk": "ssd"}))),
            (f"{SPEC}.tolerations[0]", "operater", "operator", job(replicaSpecs=pod(tolerations=[{"operater": "E"}]))),
            (
                f"{SPEC}.containers[0].livenessProbe.httpGet",
                "Port",
                "port",
                _in_a_container(livenessProbe={"httpGet": {"Port": 80}}),
            ),
            (
                "spec.program.env[0]",
                "valueform",
                "valueFrom",
                job(program={"entrypoint": "a.py", "env": [{"name": "A", "valueform": {}}]}),
            ),
            (
                "spec.checkpoint.storage.volume.persistentVolumeClaim",
                "claimname",
                "claimName",
                storage(volume={"persistentVolumeClaim": {"claimname": "digits"}}),
            ),
            (
                "spec.checkpoint.storage.volumeClaimTemplate.spec",
                "storageclassName",
                "storageClassName",
                storage(volumeClaimTemplate={"spec": {**CLAIM_TEMPLATE["spec"], "storageclassName": "fast"}}),
            ),
        )
    ),
    *(
        bad(f"of-another-type-{name}", manifest, f"{path}: {says}")
        for name, path, says, manifest in (
            (
                "user",
                f"{SPEC}.securityContext.runAsUser",
                "must be a whole number, not '1000'",
                job(replicaSpecs=pod(securityContext={"runAsUser": "1000"})),
            ),
            (
                "host-network",
                f"{SPEC}.hostNetwork",
                "must be true or false, not 'yes'",
                job(replicaSpecs=pod(hostNetwork="yes")),
            ),
            (
                "probe",
                f"{SPEC}.containers[0].livenessProbe",
                "must be a mapping (names with values), not a list",
                _in_a_container(livenessProbe=[{"periodSeconds": 1}]),
            ),
            (
                "port-of-a-probe",
                f"{SPEC}.containers[0].livenessProbe.tcpSocket.port",
                "must be a number or a name, not a mapping",
                _in_a_container(livenessProbe={"tcpSocket": {"port": {}}}),
            ),
            (
                "size-limit",
                f"{SPEC}.volumes[0].emptyDir.sizeLimit",
                "must be a quantity, such as 4, 500m or 16Gi (in quotes), not true",
                job(replicaSpecs=pod(volumes=[{"name": "a", "emptyDir": {"sizeLimit": True}}])),
            ),
            (
                "volume-attribute",
                "spec.checkpoint.storage.volume.csi.volumeAttributes.size",
                "must be text, not 3: put it into quotes",
                storage(volume={"csi": {"driver": "a", "volumeAttributes": {"size": 3}}}),
            ),
        )
    ),
    *(
        bad(
            f"mount-of-our-volume-{name}", manifest, f"{SPEC}.volumes", "a volumeMount names a volume that is not there"
        )
        for name, manifest in (
            ("checkpoints-without-checkpoint", _in_a_container(volumeMounts=mounts("checkpoints"))),
            (
                "checkpoints-of-the-chief",
                changed(_in_a_container(volumeMounts=mounts("checkpoints")), "spec", "checkpoint", to=CHECKPOINT),
            ),
            (
                "cluster-without-program",
                changed(_in_a_container(volumeMounts=mounts("dtjob-cluster")), "spec", "program", to=...),
            ),
        )
    ),
]
"""What the API server takes into a job, and refuses in each of its pods. The definition has no room for these rules."""
