# SPDX-License-Identifier: Apache-2.0
"""Pod templates: what belongs to dtjob, and what is said twice."""

from typing import Any

from tests.refusals.manifests import CHECKPOINT, Manifest, bad, bad_in, job, pod, training, warned

LOG = {"name": "log", "image": "fluent-bit"}
SPREAD = {"topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "maxSkew": 1}

ROLES = ("chief", "worker", "ps", "data", "evaluator")
_OF_SPEC = ("program", "scheduling")


def of_role(role: str, **fields: Any) -> Manifest:
    """A job of all roles, in which the pods of one have these fields; `program` and `scheduling` are the job's."""
    spec = {name: fields.pop(name) for name in _OF_SPEC if name in fields}
    specs: Manifest = {"chief": {}, "worker": {}, "ps": {}, "evaluator": {}, role: {"template": {"spec": fields}}}
    return job("ParameterServer", replicaSpecs=specs, checkpoint=CHECKPOINT, **spec)


PODS = [
    warned(
        bad(
            "hostname",
            job(replicaSpecs=pod(hostname="a")),
            "spec.replicaSpecs.worker.template.spec.hostname",
            "belongs to dtjob",
            "remove it",
        )
    ),
    warned(
        bad(
            "subdomain",
            job(replicaSpecs=pod(subdomain="a")),
            "spec.replicaSpecs.worker.template.spec.subdomain",
            "remove it",
        )
    ),
    warned(
        bad(
            "restartPolicy",
            job(replicaSpecs=pod(restartPolicy="Always")),
            "spec.replicaSpecs.worker.template.spec.restartPolicy",
            "set spec.failurePolicy",
        )
    ),
    bad(
        "container-without-name",
        job(replicaSpecs=pod(containers=[{"image": "a"}])),
        "spec.replicaSpecs.worker.template.spec.containers[0].name: Required",
        or_says=("spec.replicaSpecs.worker.template.spec.containers[0].name: is required",),
    ),
    *(
        bad(
            f"{name}-twice",
            job(replicaSpecs=replicas),
            f"spec.replicaSpecs.worker.template.spec.{field}: Duplicate value",
            or_says=(f"spec.replicaSpecs.worker.template.spec.{field}: has the", "change it, or remove it"),
        )
        for name, replicas, field in (
            ("container", pod(containers=[LOG, LOG]), "containers[1]"),
            ("init-container", pod(initContainers=[LOG, {"name": "b", "image": "b"}, LOG]), "initContainers[2]"),
            ("volume", pod(volumes=[{"name": "a", "emptyDir": {}}, {"name": "a", "nfs": {}}]), "volumes[1]"),
            ("pull-secret", pod(imagePullSecrets=[{"name": "a"}, {"name": "a"}]), "imagePullSecrets[1]"),
            (
                "spread",
                pod(topologySpreadConstraints=[SPREAD, {**SPREAD, "maxSkew": 2}]),
                "topologySpreadConstraints[1]",
            ),
            ("variable", training(env=[{"name": "A"}, {"name": "A"}]), "containers[0].env[1]"),
            (
                "port",  # protocol is TCP where it is left out
                training(ports=[{"containerPort": 80, "protocol": "TCP"}, {"containerPort": 80}]),
                "containers[0].ports[1]",
            ),
            (
                "mount",
                training(volumeMounts=[{"name": "a", "mountPath": "/a"}, {"name": "b", "mountPath": "/a"}]),
                "containers[0].volumeMounts[1]",
            ),
        )
    ),
    *(
        bad(
            f"{of}-as-number",
            manifest,
            f"{field}.value",
            "must be of type string",
            or_says=(f"{field}.value: must be text, not 20: put it into quotes",),
        )
        for of, field, manifest in (
            (
                "variable",
                "spec.program.env[0]",
                job(program={"entrypoint": "a.py", "env": [{"name": "A", "value": 20}]}),
            ),
            (
                "variable-of-a-container",
                "spec.replicaSpecs.worker.template.spec.containers[0].env[1]",
                job(replicaSpecs=training(env=[{"name": "B", "value": "1"}, {"name": "A", "value": 20}])),
            ),
        )
    ),
    bad(
        "variable-as-bool",
        job(program={"entrypoint": "a.py", "env": [{"name": "A", "value": True}]}),
        "spec.program.env[0].value",
        or_says=("spec.program.env[0].value: must be text, not true",),
    ),
    bad(
        "termination-message-path-as-number",
        job(replicaSpecs=training(terminationMessagePath=7)),
        "spec.replicaSpecs.worker.template.spec.containers[0].terminationMessagePath",
        "must be of type string",
        or_says=("spec.replicaSpecs.worker.template.spec.containers[0].terminationMessagePath: must be text, not 7",),
    ),
    bad(
        "tolerations-as-a-mapping",
        job(replicaSpecs=pod(tolerations={"key": "gpu", "operator": "Exists"})),
        "spec.replicaSpecs.worker.template.spec.tolerations",
        or_says=("spec.replicaSpecs.worker.template.spec.tolerations: must be a list, not a mapping",),
    ),
    *(
        bad(
            f"{field}-as-a-list",
            job(replicaSpecs=pod(**{field: [{"runAsUser": 1}]})),
            f"spec.replicaSpecs.worker.template.spec.{field}",
            "must be of type object",
            or_says=(
                f"spec.replicaSpecs.worker.template.spec.{field}: must be a mapping (names with values), not a list",
            ),
        )
        for field in ("affinity", "securityContext", "overhead")
    ),
    bad(
        "variable-of-the-program-twice",
        job(program={"entrypoint": "a.py", "env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]}),
        "spec.program.env[1]: Duplicate value",
        or_says=("spec.program.env[1]: has the name of an entry before it",),
    ),
    bad(
        "volume-without-name",
        job(replicaSpecs=pod(volumes=[{"emptyDir": {}}])),
        "spec.replicaSpecs.worker.template.spec.volumes[0].name: Required",
        or_says=("spec.replicaSpecs.worker.template.spec.volumes[0].name: is required",),
    ),
    bad(
        "init-container-named-as-a-container",
        job(replicaSpecs=pod(containers=[LOG], initContainers=[LOG])),
        "spec.replicaSpecs.worker.template.spec.initContainers",
        "rename one of them",
    ),
    bad(
        "init-container-named-tensorflow",
        job(replicaSpecs=pod(initContainers=[{"name": "tensorflow", "image": "a"}])),
        "spec.replicaSpecs.worker.template.spec.initContainers",
        "rename the init container",
    ),
    bad(
        "TF_CONFIG-in-template",
        job(replicaSpecs=training(env=[{"name": "TF_CONFIG", "value": "{}"}])),
        "spec.replicaSpecs.worker.template.spec.containers",
        "TF_CONFIG",
        "remove it, or remove program",
    ),
    bad(
        "DTJOB-variable-in-sidecar",
        job(replicaSpecs=pod(containers=[{**LOG, "env": [{"name": "DTJOB_ROLE", "value": "ps"}]}])),
        "spec.replicaSpecs.worker.template.spec.containers[0].env",
        "remove them",
    ),
    bad(
        "DTJOB-variable-in-init-container",
        job(replicaSpecs=pod(initContainers=[{**LOG, "env": [{"name": "DTJOB_UID"}]}])),
        "spec.replicaSpecs.worker.template.spec.initContainers[0].env",
        "remove them",
    ),
    bad(
        "TF_CONFIG-in-program",
        job(program={"entrypoint": "a.py", "env": [{"name": "TF_CONFIG", "value": "{}"}]}),
        "spec.program.env",
        "TF_CONFIG belongs to dtjob",
        "remove it",
    ),
    *(
        bad(
            f"variables-of-{name}-in-program",
            job(program={"entrypoint": "a.py", "envFrom": [sources]}),
            "spec.program.envFrom",
            "each entry must have either secretRef or configMapRef",
        )
        for name, sources in {
            "nothing": {"prefix": "A_"},
            "two-objects": {"secretRef": {"name": "a"}, "configMapRef": {"name": "b"}},
        }.items()
    ),
    bad(
        "DTJOB-variable-in-program",
        job(program={"entrypoint": "a.py", "env": [{"name": "DTJOB_ROLE", "value": "ps"}]}),
        "spec.program.env",
        "remove them",
    ),
    bad(
        "own-label",
        job(replicaSpecs={"worker": {"template": {"metadata": {"labels": {"training.dtjob.dev/role": "ps"}}}}}),
        "spec.replicaSpecs.worker.template.metadata.labels",
        "remove them",
    ),
    bad(
        "label-of-who-manages-it",
        job(replicaSpecs={"worker": {"template": {"metadata": {"labels": {"app.kubernetes.io/managed-by": "helm"}}}}}),
        "spec.replicaSpecs.worker.template.metadata.labels",
        "app.kubernetes.io/managed-by belong to dtjob: remove them",
    ),
    bad(
        "label-as-number",
        job(replicaSpecs={"worker": {"template": {"metadata": {"labels": {"a": 1}}}}}),
        "spec.replicaSpecs.worker.template.metadata.labels.a",
        "must be of type string",
        or_says=("spec.replicaSpecs.worker.template.metadata.labels.a: must be text, not",),
    ),
    bad(
        "resources-twice",
        job(
            replicaSpecs={
                "worker": {
                    "resources": {"limits": {"cpu": 1}},
                    "template": {"spec": {"containers": [{"name": "tensorflow", "resources": {"limits": {"cpu": 2}}}]}},
                }
            }
        ),
        "spec.replicaSpecs.worker.resources",
        "template.spec.containers[name=tensorflow].resources",
        "keep one of them",
    ),
    *(
        bad(
            f"image-of-{role}-twice",
            of_role(role, containers=[{"name": "tensorflow", "image": "other"}]),
            f"spec.replicaSpecs.{role}.template.spec.containers",
            f"spec.image and spec.replicaSpecs.{role}.template.spec.containers[name=tensorflow].image",
            "keep one of them",
        )
        for role in ROLES
    ),
    *(
        bad(
            f"variable-in-program-and-template-of-{role}",
            of_role(
                role,
                program={"entrypoint": "a.py", "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "1"}]},
                containers=[
                    {"name": "tensorflow", "env": [{"name": "C", "value": "2"}, {"name": "B", "value": "2"}]},
                ],
            ),
            f"spec.replicaSpecs.{role}.template.spec.containers",
            f"spec.program.env and spec.replicaSpecs.{role}.template.spec.containers[name=tensorflow].env",
            "keep one of them",
        )
        for role in ROLES
    ),
    *(
        bad_in(
            f"spec.replicaSpecs.{role}.template.spec",
            f"priority-class-of-{role}-twice",
            of_role(role, scheduling={"priorityClassName": "high"}, priorityClassName="low"),
            "priorityClassName",
            f"spec.scheduling.priorityClassName and spec.replicaSpecs.{role}.template.spec.priorityClassName",
            "keep one of them",
        )
        for role in ROLES
    ),
    *(
        bad(
            f"{among}-without-image",
            job(replicaSpecs=pod(**{among: [LOG, {"name": "proxy"}]})),
            f"spec.replicaSpecs.worker.template.spec.{among}[1].image",
            "container proxy has no image",
            "only the container tensorflow takes spec.image",
        )
        for among in ("containers", "initContainers")
    ),
    *(
        bad(
            f"port-{port}-of-a-sidecar-among-{among}",
            job(replicaSpecs=pod(**{among: [{**LOG, "ports": [{"containerPort": port}]}]})),
            "spec.replicaSpecs.worker.template.spec",
            "change its containerPort, or change network.port, network.statusPort or network.rendezvousPort",
        )
        for among in ("containers", "initContainers")
        for port in (2222, 2223, 2224)
    ),
    bad(
        "port-of-a-sidecar-without-program",
        job(program=..., replicaSpecs=pod(containers=[{**LOG, "ports": [{"containerPort": 2222}]}])),
        "spec.replicaSpecs.worker.template.spec",
        "change its containerPort",
    ),
    *(
        bad(
            f"{field}-beside-program",
            job(replicaSpecs=training(**{field: ["python", "a.py"]})),
            "spec.replicaSpecs.worker.template.spec.containers",
            "use program.entrypoint and program.args, or remove program",
        )
        for field in ("command", "args")
    ),
]
