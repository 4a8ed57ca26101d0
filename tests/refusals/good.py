# SPDX-License-Identifier: Apache-2.0
"""Manifests that are taken, from the smallest to one with every field."""

from tests.refusals.elastic import ELASTIC_TAKEN
from tests.refusals.failure_rules import FAILURE_RULES_TAKEN
from tests.refusals.gangs import GANGS_TAKEN
from tests.refusals.grace import GRACE_TAKEN
from tests.refusals.life import LIFE_TAKEN
from tests.refusals.manifests import (
    CHECKPOINT,
    CLAIM,
    CLAIM_TEMPLATE,
    SINGLE,
    Manifest,
    checkpoint,
    job,
    options,
    pod,
    storage,
    training,
)
from tests.refusals.metadata import METADATA_TAKEN
from tests.refusals.resources import RESOURCES_TAKEN
from tests.refusals.stalls import STALLS_TAKEN

_EMPTY_CONTAINER = {
    "name": "tensorflow",
    "securityContext": None,
    "terminationMessagePath": None,
    "env": [{"name": "A", "value": None}],
}
LEFT_EMPTY = job(
    replicaSpecs=pod(
        affinity=None, tolerations=None, securityContext=None, overhead=None, containers=[_EMPTY_CONTAINER]
    )
)
"""As templates of other tools leave them, and pods take it."""

_MANY = {
    side: [{"name": f"{side}_{number}", "value": "1"} for number in range(512)] for side in ("PROGRAM", "TEMPLATE")
}
MANY_VARIABLES = job(
    "ParameterServer",
    image=...,
    program={"entrypoint": "a.py", "env": _MANY["PROGRAM"]},
    replicaSpecs={
        role: {"template": {"spec": {"containers": [{"name": "tensorflow", "env": _MANY["TEMPLATE"]}]}}}
        for role in ("chief", "worker", "ps")
    },
)
"""An API server compares all of them within the time that it allows."""

EVERYTHING = job(
    "MultiWorkerMirrored",
    name="everything",
    program={
        "source": {"configMap": {"name": "train-source"}},
        "requirements": "requirements.txt",
        "entrypoint": "train.main",
        "args": ["--epochs=20"],
        "integration": "None",
        "env": [{"name": "A", "value": "1"}],
    },
    replicaSpecs={
        "chief": {"resources": {"limits": {"nvidia.com/gpu": 1, "memory": "16Gi"}, "requests": {"cpu": "500m"}}},
        "worker": {
            "replicas": 3,
            "template": {
                "metadata": {"labels": {"team": "vision"}, "annotations": {"a": "b"}},
                "spec": {
                    "nodeSelector": {"pool": "gpu"},
                    "tolerations": [{"key": "gpu", "operator": "Exists"}],
                    "volumes": [{"name": "data", "nfs": {"server": "a", "path": "/"}}],
                    "imagePullSecrets": [{"name": "registry"}],
                    "topologySpreadConstraints": [
                        {"topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "maxSkew": 1},
                        {"topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway", "maxSkew": 1},
                    ],
                    "initContainers": [{"name": "get", "image": "busybox", "command": ["true"]}],
                    "containers": [
                        {
                            "name": "tensorflow",
                            "env": [{"name": "NCCL_DEBUG", "value": "INFO"}],
                            "ports": [
                                {"containerPort": 80, "name": "http", "hostPort": 80},
                                {"containerPort": 80, "protocol": "UDP"},
                            ],
                            "volumeMounts": [{"name": "data", "mountPath": "/data", "readOnly": True}],
                        },
                        {"name": "log", "image": "busybox", "args": ["-f"]},
                    ],
                },
            },
        },
        "evaluator": {},
    },
    strategyOptions={"communication": "Ring"},
    checkpoint={
        "storage": {"volume": CLAIM, "mountOn": "All"},
        "everyEpochs": 2,
        "everySteps": 100,
        "everySeconds": 60,
        "maxToKeep": 5,
        "keepEverySteps": 1000,
        "keepBest": 2,
        "writeMode": "Sync",
        "saveTimeoutSeconds": 120,
    },
    evaluation={"checkpoints": "Every", "best": {"metric": "accuracy", "mode": "Max", "keepModel": False}},
    tensorBoard={"everySteps": 50, "profile": {"firstStep": 100, "steps": 3}},
    successPolicy="AllWorkers",
    failurePolicy={
        "maxRestartsWithoutProgress": 3,
        "maxRestarts": 30,
        "maxDisruptionsWithoutProgress": 20,
        "backoff": {"initialSeconds": 0, "maxSeconds": 60},
        "stallTimeoutSeconds": 600,
    },
    cleanPodPolicy="All",
    activeDeadlineSeconds=86400,
    startDeadlineSeconds=1800,
    ttlSecondsAfterFinished=3600,
    suspend=False,
    managedBy="training.dtjob.dev/dtjob-controller",
    scheduling={"priorityClassName": "high"},
    network={"port": 3000, "statusPort": 3001, "rendezvousPort": 3002, "isolation": "None"},
)

GOOD: dict[str, Manifest] = {
    "smallest": job("Default", program=...),
    "image-of-the-operator": job("Default", image=...),
    "image-left-empty": job("Default", image=None),
    "smallest-with-program": job("Default"),
    **{f"single-{strategy}": job(strategy) for strategy in SINGLE},
    "chief-and-workers": job(),
    "workers-without-chief": job(replicaSpecs={"worker": {"replicas": 3}}),
    "chief-alone-under-MultiWorkerMirrored": job(replicaSpecs={"chief": {}}),
    "parameter-server": job("ParameterServer"),
    "parameter-server-of-another-image": job(
        "ParameterServer", program=..., replicaSpecs={"worker": {"replicas": 2}, "ps": {}, "evaluator": {}}
    ),
    "all-workers": job(successPolicy="AllWorkers"),
    "all-workers-of-a-parameter-server": job("ParameterServer", program=..., successPolicy="AllWorkers"),
    "the-chief-decides": job("Mirrored", successPolicy="Chief"),
    "TF_CONFIG-without-program": job(program=..., replicaSpecs=training(env=[{"name": "TF_CONFIG", "value": "{}"}])),
    "TF_CONFIG-of-a-sidecar": job(
        replicaSpecs=pod(containers=[{"name": "log", "image": "a", "env": [{"name": "TF_CONFIG", "value": "{}"}]}])
    ),
    "evaluator": job("Mirrored", replicaSpecs={"chief": {}, "evaluator": {}}, checkpoint=CHECKPOINT),
    "data-workers": job("Mirrored", replicaSpecs={"chief": {}, "data": {"replicas": 4, "resources": {}}}),
    "data-port-without-data-workers": job(network={"port": 2225}),
    "evaluator-of-other-image": job(program=..., replicaSpecs={"chief": {}, "evaluator": {}}),
    "everything": EVERYTHING,
    "bucket": storage(uri="gs://bucket/digits"),
    "s3-bucket": storage(uri="s3://bucket/digits"),
    "bucket-without-program": job(program=..., checkpoint={"storage": {"uri": "gs://bucket"}}),
    "volume": checkpoint(),
    "volume-elsewhere": storage(volume=CLAIM, mountPath="/data/run 1", subPath="team-a/..digits"),
    "keep-and-mode-with-program": checkpoint(maxToKeep=1, writeMode="Async"),
    "keep-by-steps-as-often-as-saved": checkpoint(everySteps=100, keepEverySteps=100),
    "keep-by-steps-what-the-clock-saves": checkpoint(keepEverySteps=1),
    "keep-the-best": job(
        replicaSpecs={"chief": {}, "evaluator": {}},
        checkpoint={**CHECKPOINT, "keepBest": 1},
        evaluation={"best": {"metric": "loss", "mode": "Min"}},
    ),
    "defaults-without-program": job(
        program=..., checkpoint={**CHECKPOINT, "everySeconds": 300, "maxToKeep": 3, "writeMode": "Async"}
    ),
    "never-by-time-and-epochs": checkpoint(everyEpochs=0, everySteps=50, everySeconds=0),
    "claim": storage(volumeClaimTemplate=CLAIM_TEMPLATE),
    "claim-of-a-class": storage(
        volumeClaimTemplate={
            "metadata": {"labels": {"team": "vision"}, "annotations": {"a": "b"}},
            "spec": {**CLAIM_TEMPLATE["spec"], "storageClassName": "fast", "volumeMode": "Filesystem"},
        },
        retention="Delete",
        subPath="a",
        mountOn="All",
    ),
    **{
        f"source-on-{name}": job(program={"entrypoint": "a.py", "source": source})
        for name, source in (
            ("claim", {"volume": CLAIM, "path": "team-a/digits"}),
            ("image", {"volume": {"image": {"reference": "code:1", "pullPolicy": "Always"}}}),
            ("csi", {"volume": {"csi": {"driver": "a", "readOnly": True}}}),
        )
    },
    "volume-not-read-only": storage(volume={"persistentVolumeClaim": {"claimName": "a", "readOnly": False}}),
    "volume-for-chief": storage(volume=CLAIM),
    "volume-for-all": storage(volume={"nfs": {"server": "a", "path": "/"}}, mountOn="All"),
    "volume-claim-template": storage(volume={"ephemeral": {"volumeClaimTemplate": {"spec": {}}}}),
    "longest-name": job("Default", name="a" * 55),
    "longest-name-for-ten-workers": job(name="a" * 54, replicaSpecs={"worker": {"replicas": 10}}),
    "most-workers": job(name="jobs", replicaSpecs={"worker": {"replicas": 4000}}),
    "most-workers-at-the-longest-name": job(name="a" * 51, replicaSpecs={"worker": {"replicas": 1040}}),
    "other-variables-in-program-and-template": job(
        program={"entrypoint": "a.py", "env": [{"name": "A", "value": "1"}]},
        replicaSpecs=training(env=[{"name": "B", "value": "1"}]),
    ),
    "ports-of-a-sidecar": job(
        replicaSpecs=pod(containers=[{"name": "log", "image": "a", "ports": [{"containerPort": 8080}]}])
    ),
    "port-of-tensorflow-named-by-its-container": job(replicaSpecs=training(ports=[{"containerPort": 2222}])),
    "sidecar-only": job(replicaSpecs=pod(containers=[{"name": "log", "image": "busybox"}])),
    "own-image-and-resources": job(image=..., replicaSpecs=training(image="other:1", resources={"limits": {"cpu": 1}})),
    "command-without-program": job(program=..., replicaSpecs=training(command=["python", "a.py"], args=["-v"])),
    "options-Mirrored": job("Mirrored", strategyOptions={"crossDeviceOps": "HierarchicalCopy", "logicalCPUs": 2}),
    "options-CentralStorage": job("CentralStorage", strategyOptions={"logicalCPUs": 4}),
    "options-OneDevice": options("OneDevice", device="GPU:1", logicalCPUs=2),
    "partitioner-fixed": options("ParameterServer", partitioner={"fixedShards": 2}),
    "partitioner-min": options("ParameterServer", partitioner={"minShardBytes": 262144}),
    "partitioner-max": options("ParameterServer", partitioner={"maxShardBytes": 262144, "maxShards": 4}),
    "tpu-of-the-node": options("TPU", tpu={"accelerator": "tpu-v5-lite-podslice", "topology": "2x4"}),
    "tpu-with-other-resources": job(
        "TPU",
        replicaSpecs={"chief": {"resources": {"limits": {"memory": "16Gi"}}}},
        strategyOptions={"tpu": {"accelerator": "tpu-v6e-slice", "topology": "2x2"}},
    ),
    "tpu-by-hand": job(
        "TPU", replicaSpecs={"chief": {"resources": {"limits": {"google.com/tpu": 4}}}}, strategyOptions={"tpu": {}}
    ),
    "tpu-by-name": options("TPU", tpu={"address": "my-tpu"}),
    "tensorboard": job(checkpoint=CHECKPOINT, tensorBoard={}),
    "profile": job(checkpoint=CHECKPOINT, tensorBoard={"profile": {"firstStep": 100}}),
    "no-restarts": job(failurePolicy={"maxRestartsWithoutProgress": 0}),
    "port-of-the-status-without-program": job(program=..., network={"port": 2223}),
    "quantities": job(replicaSpecs={"chief": {"resources": {"limits": {"cpu": "1.5", "memory": "1e9", "a/b": 0}}}}),
    **GANGS_TAKEN,
    **RESOURCES_TAKEN,
    **GRACE_TAKEN,
    **LIFE_TAKEN,
    **ELASTIC_TAKEN,
    **FAILURE_RULES_TAKEN,
    **STALLS_TAKEN,
    **METADATA_TAKEN,
    "parts-of-a-pod-left-empty": LEFT_EMPTY,
    "many-variables": MANY_VARIABLES,
    "fields-left-empty": job(
        replicaSpecs={"chief": None, "worker": {"replicas": None}},
        program={"entrypoint": "a.py", "args": None},
        checkpoint=None,
        network=None,
    ),
}
