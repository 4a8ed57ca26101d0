# SPDX-License-Identifier: Apache-2.0
"""Single fields: wrong types, values out of bounds, fields that are missing or unknown."""

from tests.refusals.manifests import bad, checkpoint, job

_AT_LEAST_1 = "should be greater than or equal to 1"
KINDS = [
    *(
        bad(
            f"replicas-{count}",
            job(replicaSpecs={"worker": {"replicas": count}}),
            "spec.replicaSpecs.worker.replicas",
            _AT_LEAST_1,
            or_says=("spec.replicaSpecs.worker.replicas: must be at least 1",),
        )
        for count in (0, -3)
    ),
    bad(
        "replicas-too-high",
        job(replicaSpecs={"worker": {"replicas": 4001}}),
        "spec.replicaSpecs.worker.replicas",
        "should be less than or equal to 4000",
        or_says=("spec.replicaSpecs.worker.replicas: must be at most 4000",),
    ),
    bad(
        "replicas-as-text",
        job(replicaSpecs={"worker": {"replicas": "3"}}),
        "spec.replicaSpecs.worker.replicas",
        "must be of type integer",
        or_says=("spec.replicaSpecs.worker.replicas: must be a whole number, not '3'",),
    ),
    bad(
        "unknown-strategy",
        job("Horovod", replicaSpecs={"chief": {}}),
        "spec.strategy",
        'supported values: "Default", "OneDevice", "Mirrored"',
        or_says=("spec.strategy: must be one of Default, OneDevice, Mirrored",),
    ),
    bad(
        "strategy-in-small-letters",
        job("mirrored"),
        "spec.strategy",
        '"Mirrored"',
        or_says=("spec.strategy: must be one of", "not 'mirrored': write Mirrored"),
    ),
    *(
        bad(
            f"no-{field}",
            job(**{field: ...}) if field != "strategy" else job(strategy=...),  # type: ignore[arg-type]
            f"spec.{field}: Required",
            or_says=(f"spec.{field}: is required; add it",),
        )
        for field in ("strategy", "replicaSpecs")
    ),
    bad("empty-image", job(image=""), "spec.image", "at least 1 chars", or_says=("spec.image: must not be empty",)),
    bad(
        "image-as-number",
        job(image=7),
        "spec.image",
        "must be of type string",
        or_says=("spec.image: must be text, not",),
    ),
    bad("no-spec", {**job(), "spec": None}, "spec", "Required", or_says=("spec: is required",)),
    bad(
        "unknown-field-in-spec",
        job(replica={}),
        'unknown field "spec.replica"',
        or_says=("spec.replica: is an unknown field; did you mean replicaSpecs?",),
    ),
    bad(
        "unknown-role",
        job(replicaSpecs={"chief": {}, "workers": {}}),
        'unknown field "spec.replicaSpecs.workers"',
        or_says=("spec.replicaSpecs.workers: is an unknown field; did you mean worker?",),
    ),
    bad(
        "unknown-field-in-checkpoint",
        checkpoint(path="/x"),
        'unknown field "spec.checkpoint.path"',
        or_says=("spec.checkpoint.path: is an unknown field", "storage"),
    ),
    bad(
        "unknown-field-at-the-top",
        {**job(), "specs": {}},
        'unknown field "specs"',
        or_says=("specs: is an unknown field; did you mean spec?",),
    ),
    bad(
        "args-as-text",
        job(program={"entrypoint": "a.py", "args": "--epochs=3"}),
        "spec.program.args",
        "must be of type array",
        or_says=("spec.program.args: must be a list, not '--epochs=3'",),
    ),
    bad(
        "arg-as-number",
        job(program={"entrypoint": "a.py", "args": ["--epochs", 3]}),
        "spec.program.args[1]",
        "must be of type string",
        or_says=("spec.program.args[1]: must be text, not",),
    ),
    bad(
        "arg-left-empty",
        job(program={"entrypoint": "a.py", "args": [None]}),
        "spec.program.args[0]",
        "must be of type string",
        or_says=("spec.program.args[0]: must be text",),
    ),
    bad(
        "env-without-name",
        job(program={"entrypoint": "a.py", "env": [{"value": "1"}]}),
        "spec.program.env[0].name: Required",
        or_says=("spec.program.env[0].name: is required",),
    ),
    bad(
        "negative-restarts",
        job(failurePolicy={"maxRestartsWithoutProgress": -1}),
        "spec.failurePolicy.maxRestartsWithoutProgress",
        "should be greater than or equal to 0",
        or_says=("spec.failurePolicy.maxRestartsWithoutProgress: must be at least 0, not -1",),
    ),
    bad(
        "negative-disruptions",
        job(failurePolicy={"maxDisruptionsWithoutProgress": -1}),
        "spec.failurePolicy.maxDisruptionsWithoutProgress",
        "should be greater than or equal to 0",
        or_says=("spec.failurePolicy.maxDisruptionsWithoutProgress: must be at least 0, not -1",),
    ),
    bad(
        "unknown-clean-pods",
        job(cleanPodPolicy="Always"),
        "spec.cleanPodPolicy",
        '"Running", "All", "None"',
        or_says=("spec.cleanPodPolicy: must be one of Running, All or None, not 'Always'",),
    ),
    bad(
        "low-port",
        job(network={"port": 80}),
        "spec.network.port",
        "should be greater than or equal to 1024",
        or_says=("spec.network.port: must be at least 1024",),
    ),
    bad(
        "keep-nothing",
        checkpoint(maxToKeep=0),
        "spec.checkpoint.maxToKeep",
        _AT_LEAST_1,
        or_says=("spec.checkpoint.maxToKeep: must be at least 1",),
    ),
    bad(
        "save-every-0-steps",
        checkpoint(everySteps=0),
        "spec.checkpoint.everySteps",
        _AT_LEAST_1,
        or_says=("spec.checkpoint.everySteps: must be at least 1",),
    ),
    bad(
        "unknown-write-mode",
        checkpoint(writeMode="Later"),
        "spec.checkpoint.writeMode",
        '"Async", "Sync"',
        or_says=("spec.checkpoint.writeMode: must be one of Async or Sync, not 'Later'",),
    ),
    bad(
        "quantity-as-fraction",
        job(replicaSpecs={"worker": {"resources": {"limits": {"cpu": 0.5}}}}),
        "spec.replicaSpecs.worker.resources.limits.cpu",
        "must be of type integer,string",
        or_says=("spec.replicaSpecs.worker.resources.limits.cpu: must be a quantity", "500m"),
    ),
    bad(
        "quantity-in-wrong-unit",
        job(replicaSpecs={"worker": {"resources": {"limits": {"memory": "16GB"}}}}),
        "spec.replicaSpecs.worker.resources.limits",
        "such as 4, 500m or 16Gi",
    ),
]
