"""Program, checkpoints, strategy options, ports and failure policy."""

from __future__ import annotations

from dtjob.api.volume_sources import MAY_BE_READ_ONLY, READ_ONLY_SOURCES
from tests.refusals.manifests import CHECKPOINT, CLAIM, bad, checkpoint, job, options

TRAINER = [
    bad("relative-directory", checkpoint(directory="checkpoints"), "spec.checkpoint.directory", "such as /checkpoints"),
    bad("s3", checkpoint(directory="s3://bucket/digits"), "spec.checkpoint.directory", "mount the bucket", "volume"),
    bad("hdfs", checkpoint(directory="hdfs://a/b"), "spec.checkpoint.directory", "only gs://BUCKET/PATH"),
    bad("gs-without-bucket", checkpoint(directory="gs://"), "spec.checkpoint.directory", "gs://BUCKET/PATH"),
    bad("no-directory", job(checkpoint={}), "spec.checkpoint.directory: Required", or_says=("directory: is required",)),
    bad(
        "gs-with-volume",
        checkpoint(directory="gs://bucket/digits", volume=CLAIM),
        "spec.checkpoint.volume",
        "remove volume",
    ),
    bad(
        "gs-with-mount",
        checkpoint(directory="gs://bucket/digits", mount="All"),
        "spec.checkpoint.mount",
        "remove mount",
    ),
    bad("mount-without-volume", checkpoint(mount="All"), "spec.checkpoint.mount", "add volume, or remove mount"),
    bad("volume-at-the-root", checkpoint(directory="/", volume=CLAIM), "spec.checkpoint.directory", "/checkpoints"),
    bad("volume-with-name", checkpoint(volume={"name": "a", **CLAIM}), "spec.checkpoint.volume.name", "remove it"),
    bad("volume-without-source", checkpoint(volume={}), "spec.checkpoint.volume", "exactly one volume source"),
    bad(
        "volume-with-two-sources",
        checkpoint(volume={**CLAIM, "emptyDir": {}}),
        "spec.checkpoint.volume",
        "exactly one volume source",
    ),
    bad(
        "volume-source-misspelt",
        checkpoint(volume={"persistentVolumeClaims": {"claimName": "a"}}),
        'unknown field "spec.checkpoint.volume.persistentVolumeClaims"',
        or_says=(
            "spec.checkpoint.volume.persistentVolumeClaims: is an unknown field; did you mean persistentVolumeClaim?",
        ),
    ),
    bad(
        "volume-source-as-text",
        checkpoint(volume={"persistentVolumeClaim": "digits"}),
        "spec.checkpoint.volume.persistentVolumeClaim",
        "must be of type object",
        or_says=("spec.checkpoint.volume.persistentVolumeClaim: must be a mapping",),
    ),
    *(
        bad(
            f"checkpoints-on-{source}",
            checkpoint(volume={source: {}}),
            f"spec.checkpoint.volume.{source}",
            "is read-only",
            "use a persistentVolumeClaim",
        )
        for source in READ_ONLY_SOURCES
    ),
    *(
        bad(
            f"checkpoints-on-read-only-{source}",
            checkpoint(volume={source: {"readOnly": True}}),
            f"spec.checkpoint.volume.{source}.readOnly",
            "is read-only",
            "remove readOnly",
        )
        for source in MAY_BE_READ_ONLY
    ),
    bad(
        "read-only-as-text",
        checkpoint(volume={"nfs": {"server": "a", "path": "/", "readOnly": "no"}}),
        "spec.checkpoint.volume.nfs.readOnly",
        "must be of type boolean",
        or_says=("spec.checkpoint.volume.nfs.readOnly: must be true or false, not 'no'",),
    ),
    *(
        bad(
            f"{field}-without-program",
            job(program=..., checkpoint={**CHECKPOINT, field: value}),
            f"spec.checkpoint.{field}",
            "set program, or remove it",
        )
        for field, value in (("everySteps", 10), ("everySeconds", 10), ("keep", 3), ("async", False))
    ),
    bad(
        "strategyOptions-without-program",
        job(program=..., strategyOptions={"communication": "Ring"}),
        "spec.strategyOptions",
        "set program, or remove it",
    ),
    bad(
        "statusPort-without-program",
        job(program=..., network={"statusPort": 3000}),
        "spec.network.statusPort",
        "set program, or remove it",
    ),
    bad(
        "communication-with-Mirrored",
        job("Mirrored", strategyOptions={"communication": "Ring"}),
        "spec.strategyOptions.communication",
        "MultiWorkerMirrored only: remove it",
    ),
    bad(
        "crossDeviceOps-with-MultiWorkerMirrored",
        job(strategyOptions={"crossDeviceOps": "NCCL"}),
        "spec.strategyOptions.crossDeviceOps",
        "Mirrored only: remove it",
    ),
    bad(
        "logicalCPUs-with-Default",
        job("Default", strategyOptions={"logicalCPUs": 2}),
        "spec.strategyOptions.logicalCPUs",
        "OneDevice, Mirrored and CentralStorage only: remove it",
    ),
    *(
        bad(
            f"{option}-with-Mirrored",
            options("Mirrored", **{option: value}),
            f"spec.strategyOptions.{option}",
            f"{strategy} only: remove it",
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
    bad(
        "partitioner-with-two-numbers",
        options("ParameterServer", partitioner={"fixedShards": 2, "maxShards": 2}),
        "spec.strategyOptions.partitioner.maxShards",
        "remove maxShards",
    ),
    bad(
        "evaluation-without-evaluator",
        job(checkpoint=CHECKPOINT, evaluation={"checkpoints": "Every"}),
        "spec.evaluation",
        "add `replicas.evaluator: {}`, or remove it",
    ),
    bad(
        "evaluation-without-program",
        job(program=..., replicas={"chief": {}, "evaluator": {}}, evaluation={}),
        "spec.evaluation",
        "set program, or remove it",
    ),
    bad(
        "best-without-mode",
        job(
            replicas={"chief": {}, "evaluator": {}}, checkpoint=CHECKPOINT, evaluation={"best": {"metric": "accuracy"}}
        ),
        "spec.evaluation.best.mode: Required",
        or_says=("spec.evaluation.best.mode: is required",),
    ),
    bad(
        "tensorboard-without-checkpoint",
        job(tensorBoard={}),
        "spec.tensorBoard",
        "add checkpoint.directory, or remove tensorBoard",
    ),
    bad(
        "tensorboard-without-program",
        job(program=..., checkpoint=CHECKPOINT, tensorBoard={}),
        "spec.tensorBoard",
        "set program, or remove it",
    ),
    bad(
        "profile-without-first-step",
        job(checkpoint=CHECKPOINT, tensorBoard={"profile": {"steps": 5}}),
        "spec.tensorBoard.profile.firstStep: Required",
        or_says=("spec.tensorBoard.profile.firstStep: is required",),
    ),
    bad("same-ports", job(network={"port": 3000, "statusPort": 3000}), "spec.network.port", "another number"),
    bad("status-port-of-tensorflow", job(network={"statusPort": 2222}), "spec.network.port", "another number"),
    bad("port-of-the-status", job(network={"port": 2223}), "spec.network.port", "another number"),
    bad(
        "backoff-turned-round",
        job(failurePolicy={"backoff": {"initialSeconds": 60, "maxSeconds": 30}}),
        "spec.failurePolicy.backoff.maxSeconds",
        "raise it",
    ),
    bad(
        "backoff-above-the-default",
        job(failurePolicy={"backoff": {"initialSeconds": 600}}),
        "spec.failurePolicy.backoff.maxSeconds",
        "raise it",
    ),
    bad("shell-line-as-entry", job(program={"entry": "a.py --fast"}), "spec.program.entry", "ends in .py", "args"),
    bad("python-as-entry", job(program={"entry": "python a.py"}), "spec.program.entry", "ends in .py"),
    bad("no-entry", job(program={}), "spec.program.entry: Required", or_says=("spec.program.entry: is required",)),
]
