# SPDX-License-Identifier: Apache-2.0
"""runPolicy and successPolicy of a TFJob: how long the job lives, what ends it, and who runs it."""

from dataclasses import dataclass
from typing import Any

from dtjob.api.spec.replica_specs import Role
from dtjob.cli.convert.failures import failure_policy
from dtjob.cli.convert.fields import Fields, number, warn_of_others, word
from dtjob.cli.convert.findings import CannotConvert, Findings
from dtjob.cli.convert.roles import Replicas

PATH = "spec.runPolicy"
TRAINING_OPERATOR = "kubeflow.org/training-operator"
_FIELDS = (
    *("cleanPodPolicy", "ttlSecondsAfterFinished", "activeDeadlineSeconds", "backoffLimit"),
    *("schedulingPolicy", "suspend", "managedBy"),
)
_CLEAN = ("None", "Running", "All")
_ALL_WORKERS = "AllWorkers"


@dataclass(frozen=True)
class Written:
    """What the policies are made of."""

    run_policy: Fields
    replicas: Replicas
    supervised: bool
    """dtjob's trainer runs the program."""


def life_of(written: Written, said: Findings) -> Fields:
    """failurePolicy and the fields of the spec about the life of the job."""
    policy = written.run_policy
    warn_of_others(policy, PATH, _FIELDS, said)
    limit = number(policy.get("backoffLimit"), f"{PATH}.backoffLimit")
    failures = failure_policy(written.replicas, limit, said, supervised=written.supervised)
    found: Fields = {"failurePolicy": failures} if failures else {}
    if "suspend" in policy:
        if not isinstance(policy["suspend"], bool):
            raise CannotConvert(f"{PATH}.suspend: must be true or false")
        found["suspend"] = policy["suspend"]
    for name in ("activeDeadlineSeconds", "ttlSecondsAfterFinished"):
        seconds = number(policy.get(name), f"{PATH}.{name}")
        found |= {} if seconds is None else {name: seconds}
    clean = word(policy.get("cleanPodPolicy"), f"{PATH}.cleanPodPolicy", _CLEAN, "All", said)
    found["cleanPodPolicy"] = clean or _CLEAN[0]
    if clean is None:
        said.note(
            f"{PATH}.cleanPodPolicy",
            "left out, so None holds as in TFJob: pods that still run when the job ends stay, such as ps. To delete "
            "them, write Running",
        )
    return {**found, **_managed_by(policy, said)}


def success_policy(given: Any, replicas: Replicas, said: Findings) -> Fields:
    """successPolicy. With a chief TFJob ignores AllWorkers."""
    policy = word(given, "spec.successPolicy", (_ALL_WORKERS,), "left out", said)
    if policy != _ALL_WORKERS:
        return {}
    if Role.CHIEF not in replicas:
        return {"successPolicy": policy}
    if Role.WORKER in replicas:
        said.warn(
            "spec.successPolicy",
            "TFJob ignores AllWorkers if there is a chief, so it is left out; with it dtjob waits for the workers too",
        )
    else:
        said.note("spec.successPolicy", "one task trains, so it decides; it is left out")
    return {}


def _managed_by(policy: Fields, said: Findings) -> Fields:
    manager = policy.get("managedBy")
    if manager == TRAINING_OPERATOR:
        said.note(f"{PATH}.managedBy", "names the operator of TFJob; it is left out, so that dtjob runs the job")
        return {}
    return {} if manager is None else {"managedBy": manager}
