"""Pod templates: what belongs to dtjob, and what is said twice."""

from __future__ import annotations

from tests.refusals.manifests import bad, job, pod, training

SPREAD = {"topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "maxSkew": 1}

PODS = [
    bad(
        "hostname",
        job(replicas=pod(hostname="a")),
        "spec.replicas.worker.template.spec.hostname",
        "belongs to dtjob",
        "remove it",
    ),
    bad("subdomain", job(replicas=pod(subdomain="a")), "spec.replicas.worker.template.spec.subdomain", "remove it"),
    bad(
        "restartPolicy",
        job(replicas=pod(restartPolicy="Always")),
        "spec.replicas.worker.template.spec.restartPolicy",
        "set spec.failurePolicy",
    ),
    bad(
        "container-without-name",
        job(replicas=pod(containers=[{"image": "a"}])),
        "spec.replicas.worker.template.spec.containers[0].name: Required",
        or_says=("spec.replicas.worker.template.spec.containers[0].name: is required",),
    ),
    *(
        bad(
            f"{name}-twice",
            job(replicas=replicas),
            f"spec.replicas.worker.template.spec.{field}: Duplicate value",
            or_says=(f"spec.replicas.worker.template.spec.{field}: has the", "change it, or remove it"),
        )
        for name, replicas, field in (
            ("container", pod(containers=[{"name": "log"}, {"name": "log"}]), "containers[1]"),
            ("init-container", pod(initContainers=[{"name": "a"}, {"name": "b"}, {"name": "a"}]), "initContainers[2]"),
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
        bad(f"{of}-as-number", manifest, field, "a variable's value is text: put it into quotes")
        for of, field, manifest in (
            ("variable", "spec.program.env", job(program={"entry": "a.py", "env": [{"name": "A", "value": 20}]})),
            (
                "variable-of-a-container",
                "spec.replicas.worker.template.spec.containers[0].env",
                job(replicas=training(env=[{"name": "B", "value": "1"}, {"name": "A", "value": 1}])),
            ),
        )
    ),
    bad(
        "variable-as-bool",
        job(program={"entry": "a.py", "env": [{"name": "A", "value": True}]}),
        "spec.program.env[0].value",
        or_says=("spec.program.env[0].value: must be text, not true",),
    ),
    bad(
        "termination-message-path-as-number",
        job(replicas=training(terminationMessagePath=7)),
        "spec.replicas.worker.template.spec.containers[0].terminationMessagePath",
        "must be of type string",
        or_says=("spec.replicas.worker.template.spec.containers[0].terminationMessagePath: must be text, not 7",),
    ),
    bad(
        "tolerations-as-a-mapping",
        job(replicas=pod(tolerations={"key": "gpu", "operator": "Exists"})),
        "spec.replicas.worker.template.spec.tolerations",
        or_says=("spec.replicas.worker.template.spec.tolerations: must be a list, not a mapping",),
    ),
    *(
        bad(
            f"{field}-as-a-list",
            job(replicas=pod(**{field: [{"runAsUser": 1}]})),
            f"spec.replicas.worker.template.spec.{field}",
            "must be of type object",
            or_says=(f"spec.replicas.worker.template.spec.{field}: must be a mapping (names with values), not a list",),
        )
        for field in ("affinity", "securityContext", "overhead")
    ),
    bad(
        "variable-of-the-program-twice",
        job(program={"entry": "a.py", "env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]}),
        "spec.program.env[1]: Duplicate value",
        or_says=("spec.program.env[1]: has the name of an entry before it",),
    ),
    bad(
        "volume-without-name",
        job(replicas=pod(volumes=[{"emptyDir": {}}])),
        "spec.replicas.worker.template.spec.volumes[0].name: Required",
        or_says=("spec.replicas.worker.template.spec.volumes[0].name: is required",),
    ),
    bad(
        "init-container-named-as-a-container",
        job(replicas=pod(containers=[{"name": "log"}], initContainers=[{"name": "log"}])),
        "spec.replicas.worker.template.spec.initContainers",
        "give each a name of its own",
    ),
    bad(
        "init-container-named-tensorflow",
        job(replicas=pod(initContainers=[{"name": "tensorflow"}])),
        "spec.replicas.worker.template.spec.initContainers",
        "another name",
    ),
    bad(
        "TF_CONFIG-in-template",
        job(replicas=training(env=[{"name": "TF_CONFIG", "value": "{}"}])),
        "spec.replicas.worker.template.spec.containers",
        "TF_CONFIG",
        "remove it, or remove program",
    ),
    bad(
        "DTJOB-variable-in-sidecar",
        job(replicas=pod(containers=[{"name": "log", "env": [{"name": "DTJOB_ROLE", "value": "ps"}]}])),
        "spec.replicas.worker.template.spec.containers[0].env",
        "remove them",
    ),
    bad(
        "DTJOB-variable-in-init-container",
        job(replicas=pod(initContainers=[{"name": "get", "env": [{"name": "DTJOB_UID"}]}])),
        "spec.replicas.worker.template.spec.initContainers[0].env",
        "remove them",
    ),
    bad(
        "TF_CONFIG-in-program",
        job(program={"entry": "a.py", "env": [{"name": "TF_CONFIG", "value": "{}"}]}),
        "spec.program.env",
        "TF_CONFIG belongs to dtjob",
        "remove it",
    ),
    bad(
        "DTJOB-variable-in-program",
        job(program={"entry": "a.py", "env": [{"name": "DTJOB_ROLE", "value": "ps"}]}),
        "spec.program.env",
        "remove them",
    ),
    bad(
        "own-label",
        job(replicas={"worker": {"template": {"metadata": {"labels": {"training.dtjob.dev/role": "ps"}}}}}),
        "spec.replicas.worker.template.metadata.labels",
        "remove them",
    ),
    bad(
        "label-of-who-manages-it",
        job(replicas={"worker": {"template": {"metadata": {"labels": {"app.kubernetes.io/managed-by": "helm"}}}}}),
        "spec.replicas.worker.template.metadata.labels",
        "says that dtjob manages the pods: remove it",
    ),
    bad(
        "label-as-number",
        job(replicas={"worker": {"template": {"metadata": {"labels": {"a": 1}}}}}),
        "spec.replicas.worker.template.metadata.labels.a",
        "must be of type string",
        or_says=("spec.replicas.worker.template.metadata.labels.a: must be text, not",),
    ),
    bad(
        "resources-twice",
        job(
            replicas={
                "worker": {
                    "resources": {"limits": {"cpu": 1}},
                    "template": {"spec": {"containers": [{"name": "tensorflow", "resources": {"limits": {"cpu": 2}}}]}},
                }
            }
        ),
        "spec.replicas.worker.resources",
        "keep one of them",
    ),
    *(
        bad(
            f"{field}-beside-program",
            job(replicas=training(**{field: ["python", "a.py"]})),
            "spec.replicas.worker.template.spec.containers",
            "use program.entry and program.args, or remove program",
        )
        for field in ("command", "args")
    ),
]
