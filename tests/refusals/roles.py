# SPDX-License-Identifier: Apache-2.0
"""Names, and roles that the strategy does not take."""

from tests.refusals.manifests import CHECKPOINT, SINGLE, bad, job

_LONG = "a" * 50

NAMES = [
    bad("name-with-dot", job(name="digits.v1"), "metadata.name", "lower-case letters, digits and dashes"),
    bad("name-begins-with-digit", job(name="1digits"), "metadata.name", "first a letter"),
    bad("name-in-capitals", job(name="Digits"), "metadata.name", "lower-case letters"),
    bad("name-ends-with-dash", job(name="digits-"), "metadata.name", "last no dash"),
    bad("name-long-for-chief", job("Default", name="a" * 56), "metadata.name", "chief", "of at most 55 characters"),
    bad(
        "name-long-for-eleven-workers",
        job(name="a" * 54, replicaSpecs={"worker": {"replicas": 11}}),
        "metadata.name",
        "worker",
        "use a shorter name, of at most 55 characters less the digits of INDEX",
    ),
    bad(
        "name-long-for-evaluator",
        job("Default", name="a" * 52, replicaSpecs={"chief": {}, "evaluator": {}}, checkpoint=CHECKPOINT),
        "metadata.name",
        "evaluator",
        "of at most 51 characters",
    ),
    bad(
        "name-long-for-data-workers",
        job("Default", name="a" * 57, replicaSpecs={"chief": {}, "data": {"replicas": 11}}),
        "metadata.name",
        "data",
        "of at most 57 characters less the digits of INDEX",
    ),
    bad(
        "name-long-for-every-role",
        job("ParameterServer", name="a" * 60),
        "worker's host name",
        "ps's host name",
        "use a shorter name",
    ),
    bad(
        "cluster-spec-of-long-name",
        job(name=_LONG, replicaSpecs={"worker": {"replicas": 1100}}),
        "spec.replicaSpecs",
        "128 KiB",
        "use fewer tasks or a shorter name",
    ),
    bad(
        "cluster-spec-of-all-roles",
        job("ParameterServer", replicaSpecs={"chief": {}, "worker": {"replicas": 3000}, "ps": {"replicas": 2000}}),
        "spec.replicaSpecs",
        "128 KiB",
        "use fewer tasks",
    ),
]

ROLES = [
    *(
        bad(
            f"{role}-with-{strategy}",
            job(strategy, replicaSpecs={"chief": {}, role: {}}),
            f"spec.replicaSpecs.{role}",
            f"remove {role}",
        )
        for strategy in SINGLE
        for role in ("worker", "ps")
    ),
    bad(
        "ps-with-MultiWorkerMirrored",
        job(replicaSpecs={"chief": {}, "worker": {}, "ps": {}}),
        "spec.replicaSpecs.ps",
        "remove ps, or set that strategy",
    ),
    *(
        bad(
            f"no-chief-with-{strategy}",
            job(strategy, replicaSpecs={"evaluator": {}}, checkpoint=CHECKPOINT),
            "spec.replicaSpecs.chief",
            "add `chief: {}`",
        )
        for strategy in SINGLE
    ),
    bad("nothing-trains", job(replicaSpecs={}), "spec.replicaSpecs", "no task trains: add `chief: {}`"),
    bad(
        "only-an-evaluator",
        job(replicaSpecs={"evaluator": {}}, checkpoint=CHECKPOINT),
        "spec.replicaSpecs",
        "add `chief: {}`",
    ),
    bad(
        "chief-left-empty", job("Mirrored", replicaSpecs={"chief": None}), "spec.replicaSpecs.chief", "add `chief: {}`"
    ),
    bad(
        "ps-without-chief",
        job("ParameterServer", replicaSpecs={"worker": {}, "ps": {}}),
        "spec.replicaSpecs.chief",
        "add `chief: {}`",
    ),
    bad(
        "ps-without-worker",
        job("ParameterServer", replicaSpecs={"chief": {}, "ps": {}}),
        "spec.replicaSpecs.worker",
        "add `worker: {replicas: 2}`",
    ),
    bad(
        "ps-without-ps",
        job("ParameterServer", replicaSpecs={"chief": {}, "worker": {}}),
        "spec.replicaSpecs.ps",
        "add `ps: {replicas: 1}`",
    ),
    bad(
        "all-workers-of-none",
        job("Mirrored", successPolicy="AllWorkers"),
        "spec.successPolicy",
        "remove successPolicy, and the chief decides",
    ),
    bad(
        "all-workers-of-a-chief-alone",
        job(replicaSpecs={"chief": {}}, successPolicy="AllWorkers"),
        "spec.successPolicy",
        "this job has no workers",
    ),
    bad(
        "all-workers-that-serve",
        job("ParameterServer", successPolicy="AllWorkers"),
        "spec.successPolicy",
        "do not end by themselves",
    ),
    bad(
        "all-workers-and-an-evaluator-beside-the-chief",
        job(
            replicaSpecs={"chief": {}, "worker": {}, "evaluator": {}},
            successPolicy="AllWorkers",
            checkpoint=CHECKPOINT,
        ),
        "spec.successPolicy",
        "set checkpoint.storage.mountOn to All",
    ),
    bad(
        "success-of-the-ps",
        job("ParameterServer", program=..., successPolicy="PS"),
        "spec.successPolicy",
        '"Chief", "AllWorkers"',
        or_says=("spec.successPolicy", "Chief", "AllWorkers"),
    ),
    *(
        bad(
            f"number-of-{role}s",
            job(replicaSpecs={"chief": {}, role: {"replicas": 1}}, checkpoint=CHECKPOINT),
            f'unknown field "spec.replicaSpecs.{role}.replicas"',
            or_says=(f"spec.replicaSpecs.{role}.replicas: is an unknown field", "there is always one"),
        )
        for role in ("chief", "evaluator")
    ),
    bad(
        "evaluator-without-checkpoint",
        job(replicaSpecs={"chief": {}, "evaluator": {}}),
        "spec.replicaSpecs.evaluator",
        "add checkpoint, or remove evaluator",
    ),
]
