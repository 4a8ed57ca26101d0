"""Names, and roles that the strategy does not take."""

from __future__ import annotations

from tests.refusals.manifests import CHECKPOINT, CLAIM, SINGLE, bad, job

_LONG = "a" * 50

NAMES = [
    bad("name-with-dot", job(name="digits.v1"), "metadata.name", "lower-case letters, digits and dashes"),
    bad("name-begins-with-digit", job(name="1digits"), "metadata.name", "beginning with a letter"),
    bad("name-in-capitals", job(name="Digits"), "metadata.name", "lower-case letters"),
    bad("name-ends-with-dash", job(name="digits-"), "metadata.name", "not ending with a dash"),
    bad("name-long-for-chief", job("Default", name="a" * 56), "metadata.name", "chief", "use a shorter name"),
    bad(
        "name-long-for-eleven-workers",
        job(name="a" * 54, replicas={"worker": {"count": 11}}),
        "metadata.name",
        "worker",
        "use a shorter name",
    ),
    bad(
        "name-long-for-evaluator",
        job("Default", name="a" * 52, replicas={"chief": {}, "evaluator": {}}, checkpoint=CHECKPOINT),
        "metadata.name",
        "evaluator",
        "use a shorter name",
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
        job(name=_LONG, replicas={"worker": {"count": 1100}}),
        "spec.replicas",
        "128 KiB",
        "use fewer tasks or a shorter name",
    ),
    bad(
        "cluster-spec-of-all-roles",
        job("ParameterServer", replicas={"chief": {}, "worker": {"count": 3000}, "ps": {"count": 2000}}),
        "spec.replicas",
        "128 KiB",
        "use fewer tasks",
    ),
]

ROLES = [
    *(
        bad(
            f"{role}-with-{strategy}",
            job(strategy, replicas={"chief": {}, role: {}}),
            f"spec.replicas.{role}",
            f"remove {role}",
        )
        for strategy in SINGLE
        for role in ("worker", "ps")
    ),
    bad(
        "ps-with-MultiWorkerMirrored",
        job(replicas={"chief": {}, "worker": {}, "ps": {}}),
        "spec.replicas.ps",
        "remove ps, or set that strategy",
    ),
    *(
        bad(
            f"no-chief-with-{strategy}",
            job(strategy, replicas={"evaluator": {}}, checkpoint=CHECKPOINT),
            "spec.replicas.chief",
            "add `chief: {}`",
        )
        for strategy in SINGLE
    ),
    bad("nothing-trains", job(replicas={}), "spec.replicas", "nothing would train: add `chief: {}`"),
    bad(
        "only-an-evaluator", job(replicas={"evaluator": {}}, checkpoint=CHECKPOINT), "spec.replicas", "add `chief: {}`"
    ),
    bad("chief-left-empty", job("Mirrored", replicas={"chief": None}), "spec.replicas.chief", "add `chief: {}`"),
    bad(
        "ps-without-chief",
        job("ParameterServer", replicas={"worker": {}, "ps": {}}),
        "spec.replicas.chief",
        "add `chief: {}`",
    ),
    bad(
        "ps-without-worker",
        job("ParameterServer", replicas={"chief": {}, "ps": {}}),
        "spec.replicas.worker",
        "add worker with a count",
    ),
    bad(
        "ps-without-ps",
        job("ParameterServer", replicas={"chief": {}, "worker": {}}),
        "spec.replicas.ps",
        "add ps with a count",
    ),
    bad(
        "all-workers-of-none",
        job("Mirrored", successPolicy="AllWorkers"),
        "spec.successPolicy",
        "remove successPolicy, and the chief decides",
    ),
    bad(
        "all-workers-of-a-chief-alone",
        job(replicas={"chief": {}}, successPolicy="AllWorkers"),
        "spec.successPolicy",
        "no workers whose end could be waited for",
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
            replicas={"chief": {}, "worker": {}, "evaluator": {}},
            successPolicy="AllWorkers",
            checkpoint={**CHECKPOINT, "volume": CLAIM},
        ),
        "spec.successPolicy",
        "set checkpoint.mount to All",
    ),
    bad(
        "success-of-the-ps",
        job("ParameterServer", program=..., successPolicy="PS"),
        "spec.successPolicy",
        '"Chief", "AllWorkers"',
        or_says=("spec.successPolicy", "Chief", "AllWorkers"),
    ),
    bad("two-chiefs", job(replicas={"chief": {"count": 2}}), "spec.replicas.chief.count", "leave count out"),
    bad(
        "two-evaluators",
        job(replicas={"chief": {}, "evaluator": {"count": 2}}, checkpoint=CHECKPOINT),
        "spec.replicas.evaluator.count",
        "leave count out",
    ),
    bad(
        "evaluator-without-checkpoint",
        job(replicas={"chief": {}, "evaluator": {}}),
        "spec.replicas.evaluator",
        "add checkpoint.directory, or remove evaluator",
    ),
]
