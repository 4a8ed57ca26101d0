# SPDX-License-Identifier: Apache-2.0
"""Program, checkpoints, strategy options, ports and failure policy."""

from dtjob.api.spec.volume_sources import MAY_BE_READ_ONLY, READ_ONLY_SOURCES
from tests.refusals.manifests import CHECKPOINT, CLAIM, CLAIM_TEMPLATE, SIZE, bad, bad_in, job, options, storage, warned

STORAGE = "spec.checkpoint.storage"
TRAINER = [
    bad(
        "relative-path", storage(volume=CLAIM, mountPath="checkpoints"), f"{STORAGE}.mountPath", "such as /checkpoints"
    ),
    bad("hdfs", storage(uri="hdfs://a/b"), f"{STORAGE}.uri", "give a bucket as gs://BUCKET/PATH or s3://BUCKET/PATH"),
    bad("path-as-uri", storage(uri="/checkpoints"), f"{STORAGE}.uri", "or use volume for a directory"),
    bad("gs-without-bucket", storage(uri="gs://"), f"{STORAGE}.uri", "gs://BUCKET/PATH"),
    bad("s3-without-bucket", storage(uri="s3:///digits"), f"{STORAGE}.uri", "s3://BUCKET/PATH"),
    bad(
        "no-storage",
        job(checkpoint={"everySteps": 5}),
        "spec.checkpoint.storage: Required",
        or_says=("spec.checkpoint.storage: is required",),
    ),
    bad("storage-of-nothing", storage(), STORAGE, "set exactly one of volume"),
    bad("storage-of-both", storage(uri="gs://bucket/digits", volume=CLAIM), STORAGE, "set exactly one of volume"),
    *(
        warned(
            bad(f"gs-with-{field}", storage(uri="gs://bucket/digits", **{field: value}), f"{STORAGE}.{field}", "remove")
        )
        for field, value in (("mountPath", "/a"), ("mountOn", "All"), ("subPath", "a"))
    ),
    *(
        bad(f"claim-and-{field}", storage(volumeClaimTemplate=CLAIM_TEMPLATE, **{field: value}), STORAGE, "exactly one")
        for field, value in (("volume", CLAIM), ("uri", "gs://bucket/digits"))
    ),
    warned(
        bad("retention-of-a-volume", storage(volume=CLAIM, retention="Delete"), f"{STORAGE}.retention", "or remove")
    ),
    *(
        bad(
            f"claim-{name}",
            storage(volumeClaimTemplate={**CLAIM_TEMPLATE, "spec": {**CLAIM_TEMPLATE["spec"], **spec}}),
            f"{STORAGE}.volumeClaimTemplate.spec.{field}",
            advice,
        )
        for name, spec, field, advice in (
            ("read-only", {"accessModes": ["ReadOnlyMany"]}, "accessModes", "add ReadWriteOnce"),
            ("without-size", {"resources": {"requests": {}}}, "resources.requests", "such as 10Gi"),
            ("of-a-device", {"volumeMode": "Block"}, "volumeMode", "remove volumeMode"),
            ("of-no-quantity", {"resources": {"requests": {"storage": "10GB"}}}, "resources.requests", "16Gi"),
            (
                *("with-no-quantity-as-limit", {"resources": {"requests": SIZE, "limits": {"storage": "1 Gi"}}}),
                *("resources.limits", "16Gi"),
            ),
        )
    ),
    *(
        bad(
            f"claim-with-label-{name}",
            storage(volumeClaimTemplate={**CLAIM_TEMPLATE, "metadata": {"labels": {label: "a"}}}),
            f"{STORAGE}.volumeClaimTemplate.metadata.labels",
            "remove",
        )
        for name, label in (("of-dtjob", "training.dtjob.dev/a"), ("managed-by", "app.kubernetes.io/managed-by"))
    ),
    *(
        bad(f"source-{name}", job(program={"entrypoint": "a.py", "source": source}), f"spec.program.source{at}", advice)
        for name, source, at, advice in (
            ("of-nothing", {}, "", "set exactly one of configMap"),
            ("of-both", {"configMap": {"name": "a"}, "volume": CLAIM}, "", "set exactly one of configMap"),
            ("path-upwards", {"volume": CLAIM, "path": "a/../.."}, ".path", "without '..'"),
            ("of-two-volumes", {"volume": {**CLAIM, "emptyDir": {}}}, ".volume", "exactly one volume source"),
            ("of-no-volume", {"volume": {}}, ".volume", "exactly one volume source"),
            ("of-an-unknown-volume", {"volume": {"git": {}}}, ".volume", "exactly one volume source"),
        )
    ),
    warned(
        bad(
            "source-path-in-a-config-map",
            job(program={"entrypoint": "a.py", "source": {"configMap": {"name": "a"}, "path": "b"}}),
            "spec.program.source.path",
            "set volume, or remove path",
        )
    ),
    bad("volume-at-the-root", storage(volume=CLAIM, mountPath="/"), f"{STORAGE}.mountPath", "/checkpoints"),
    bad("path-with-colon", storage(volume=CLAIM, mountPath="/a:b"), f"{STORAGE}.mountPath", "without a colon"),
    *(
        bad(f"sub-path-{name}", storage(volume=CLAIM, subPath=path), f"{STORAGE}.subPath", "such as team-a/digits")
        for name, path in {"from-the-root": "/a", "upwards": "a/../../b"}.items()
    ),
    bad("volume-with-name", storage(volume={"name": "a", **CLAIM}), "spec.checkpoint.storage.volume.name", "remove it"),
    bad("volume-without-source", storage(volume={}), "spec.checkpoint.storage.volume", "exactly one volume source"),
    bad(
        "volume-with-two-sources",
        storage(volume={**CLAIM, "emptyDir": {}}),
        "spec.checkpoint.storage.volume",
        "exactly one volume source",
    ),
    bad(
        "volume-source-misspelt",
        storage(volume={"persistentVolumeClaims": {"claimName": "a"}}),
        'unknown field "spec.checkpoint.storage.volume.persistentVolumeClaims"',
        or_says=(
            "spec.checkpoint.storage.volume.persistentVolumeClaims: is an unknown field; "
            "did you mean persistentVolumeClaim?",
        ),
    ),
    bad(
        "volume-source-as-text",
        storage(volume={"persistentVolumeClaim": "digits"}),
        "spec.checkpoint.storage.volume.persistentVolumeClaim",
        "must be of type object",
        or_says=("spec.checkpoint.storage.volume.persistentVolumeClaim: must be a mapping",),
    ),
    *(
        bad(
            f"checkpoints-on-{source}",
            storage(volume={source: {}}),
            "spec.checkpoint.storage.volume",
            "is read-only",
            "use another one, such as {persistentVolumeClaim",
        )
        for source in READ_ONLY_SOURCES
    ),
    *(
        bad(
            f"checkpoints-on-read-only-{source}",
            storage(volume={source: {"readOnly": True}}),
            "spec.checkpoint.storage.volume",
            "checkpoints are written to this volume",
            "remove readOnly",
        )
        for source in MAY_BE_READ_ONLY
    ),
    bad(
        "read-only-as-text",
        storage(volume={"nfs": {"server": "a", "path": "/", "readOnly": "no"}}),
        "spec.checkpoint.storage.volume.nfs.readOnly",
        "must be of type boolean",
        or_says=("spec.checkpoint.storage.volume.nfs.readOnly: must be true or false, not 'no'",),
    ),
    *(
        warned(
            bad_in(
                "spec.checkpoint",
                f"{field}-without-program",
                job(program=..., checkpoint={**CHECKPOINT, field: value}),
                field,
                "set program, or remove it",
            )
        )
        for field, value in (
            *(("everyEpochs", 1), ("everySteps", 10), ("everySeconds", 10), ("maxToKeep", 5), ("writeMode", "Sync")),
            *(("keepEverySteps", 10), ("keepBest", 2)),
        )
    ),
    warned(
        bad(
            "keep-more-often-than-save",
            job(checkpoint={**CHECKPOINT, "everySteps": 100, "keepEverySteps": 99}),
            "spec.checkpoint.keepEverySteps",
            "raise it, or lower everySteps",
        )
    ),
    bad_in(
        "spec.checkpoint",
        "keep-the-best-without-a-metric",
        job(
            replicaSpecs={"chief": {}, "evaluator": {}},
            checkpoint={**CHECKPOINT, "keepBest": 2},
            evaluation={"checkpoints": "Every"},
        ),
        "keepBest",
        "add `evaluation.best`, such as {metric: accuracy, mode: Max}, or remove keepBest",
    ),
    warned(
        bad(
            "strategyOptions-without-program",
            job(program=..., strategyOptions={"communication": "Ring"}),
            "spec.strategyOptions",
            "set program, or remove it",
        )
    ),
    warned(
        bad_in(
            "spec.strategyOptions",
            "communication-with-Mirrored",
            job("Mirrored", strategyOptions={"communication": "Ring"}),
            "communication",
            "MultiWorkerMirrored only: remove it",
        )
    ),
    warned(
        bad_in(
            "spec.strategyOptions",
            "crossDeviceOps-with-MultiWorkerMirrored",
            job(strategyOptions={"crossDeviceOps": "NCCL"}),
            "crossDeviceOps",
            "Mirrored only: remove it",
        )
    ),
    warned(
        bad_in(
            "spec.strategyOptions",
            "logicalCPUs-with-Default",
            job("Default", strategyOptions={"logicalCPUs": 2}),
            "logicalCPUs",
            "OneDevice, Mirrored and CentralStorage only: remove it",
        )
    ),
    *(
        warned(
            bad_in(
                "spec.strategyOptions",
                f"{option}-with-Mirrored",
                options("Mirrored", **{option: value}),
                option,
                f"{strategy} only: remove it",
            )
        )
        for option, value, strategy in (
            ("device", "CPU:0", "OneDevice"),
            ("partitioner", {"fixedShards": 2}, "ParameterServer"),
            ("tpu", {}, "TPU"),
        )
    ),
    bad(
        "device-of-no-kind",
        options("OneDevice", device="/device:GPU:0"),
        "spec.strategyOptions.device",
        "such as GPU:0 or CPU:0",
    ),
    *(
        bad(
            f"partitioner-of-{name}",
            options("ParameterServer", partitioner=value),
            "spec.strategyOptions.partitioner",
            "exactly one of fixedShards, minShardBytes, maxShardBytes",
        )
        for name, value in (
            ("nothing", {}),
            ("max-alone", {"maxShards": 2}),
            ("two-kinds", {"fixedShards": 2, "minShardBytes": 9}),
        )
    ),
    warned(
        bad(
            "partitioner-with-two-numbers",
            options("ParameterServer", partitioner={"fixedShards": 2, "maxShards": 2}),
            "spec.strategyOptions.partitioner.maxShards",
            "remove maxShards",
        )
    ),
    warned(
        bad(
            "evaluation-without-evaluator",
            job(checkpoint=CHECKPOINT, evaluation={"checkpoints": "Every"}),
            "spec.evaluation",
            "add `replicaSpecs.evaluator: {}`, or remove evaluation",
        )
    ),
    warned(
        bad(
            "evaluation-without-program",
            job(program=..., replicaSpecs={"chief": {}, "evaluator": {}}, evaluation={}),
            "spec.evaluation",
            "set program, or remove it",
        )
    ),
    bad(
        "best-without-mode",
        job(
            replicaSpecs={"chief": {}, "evaluator": {}},
            checkpoint=CHECKPOINT,
            evaluation={"best": {"metric": "accuracy"}},
        ),
        "spec.evaluation.best.mode: Required",
        or_says=("spec.evaluation.best.mode: is required",),
    ),
    warned(
        bad(
            "tensorboard-without-checkpoint",
            job(tensorBoard={}),
            "spec.tensorBoard",
            "add checkpoint, or remove tensorBoard",
        )
    ),
    warned(
        bad(
            "tensorboard-without-program",
            job(program=..., checkpoint=CHECKPOINT, tensorBoard={}),
            "spec.tensorBoard",
            "set program, or remove it",
        )
    ),
    bad(
        "profile-without-first-step",
        job(checkpoint=CHECKPOINT, tensorBoard={"profile": {"steps": 5}}),
        "spec.tensorBoard.profile.firstStep: Required",
        or_says=("spec.tensorBoard.profile.firstStep: is required",),
    ),
    *(
        bad_in("spec.network", name, job(network=network), field, "change one of them")
        for name, network, field in (
            ("same-ports", {"port": 3000, "statusPort": 3000}, "port"),
            ("status-port-of-tensorflow", {"statusPort": 2222}, "port"),
            ("port-of-the-status", {"port": 2223}, "port"),
            ("port-of-the-rendezvous", {"port": 2224}, "port"),
            ("status-port-of-the-rendezvous", {"statusPort": 2224}, "statusPort"),
        )
    ),
    *(
        bad(
            f"data-port-{port}",
            job(replicaSpecs={"chief": {}, "data": {}}, network={"dataPort": port}),
            "spec.network.dataPort",
            f"dataPort (by default 2225) and {other} (by default {port}) must differ: change one of them",
        )
        for port, other in ((2222, "port"), (2223, "statusPort"), (2224, "rendezvousPort"))
    ),
    bad(
        "data-workers-of-other-image",
        job(program=..., replicaSpecs={"chief": {}, "data": {}}),
        "spec.replicaSpecs.data",
        "data workers run dtjob's trainer: add program, or remove data",
    ),
    bad(
        "rendezvous-port-low",
        job(network={"rendezvousPort": 80}),
        "spec.network.rendezvousPort",
        or_says=("at least 1024",),
    ),
    warned(
        bad(
            "backoff-turned-round",
            job(failurePolicy={"backoff": {"initialSeconds": 60, "maxSeconds": 30}}),
            "spec.failurePolicy.backoff.maxSeconds",
            "raise it",
        )
    ),
    warned(
        bad(
            "backoff-above-the-default",
            job(failurePolicy={"backoff": {"initialSeconds": 600}}),
            "spec.failurePolicy.backoff.maxSeconds",
            "raise it",
        )
    ),
    bad(
        "shell-line-as-entrypoint",
        job(program={"entrypoint": "a.py --fast"}),
        "spec.program.entrypoint",
        "must be a Python file (train.py)",
        "args",
    ),
    bad(
        "python-as-entrypoint",
        job(program={"entrypoint": "python a.py"}),
        "spec.program.entrypoint",
        "must be a Python file (train.py)",
    ),
    bad(
        "no-entrypoint",
        job(program={}),
        "spec.program.entrypoint: Required",
        or_says=("spec.program.entrypoint: is required",),
    ),
]
