# SPDX-License-Identifier: Apache-2.0
"""The roles of a TFJob, and the strategy that has them."""

from collections.abc import Mapping
from dataclasses import dataclass

from dtjob.api.spec.replica_specs import Role
from dtjob.api.spec.strategy import Strategy
from dtjob.cli.convert.fields import Fields, choice, mapping, number, warn_of_others
from dtjob.cli.convert.findings import CannotConvert, Findings

PATH = "spec.tfReplicaSpecs"
RESTART_POLICIES = ("Never", "Always", "OnFailure", "ExitCode")
_ROLES = {
    "chief": Role.CHIEF,
    "master": Role.CHIEF,
    "worker": Role.WORKER,
    "ps": Role.PS,
    "evaluator": Role.EVALUATOR,
}
_SINGLE = (Role.CHIEF, Role.EVALUATOR)
_GPU = "nvidia.com/gpu"


@dataclass(frozen=True)
class Replica:
    """One role of the TFJob."""

    path: str
    replicas: int
    restart_policy: str
    template: Fields


Replicas = Mapping[Role, Replica]


def replicas_of(spec: Fields, said: Findings) -> Replicas:
    """The roles in the order of dtjob. Raises CannotConvert."""
    written = mapping(spec.get("tfReplicaSpecs"), PATH)
    found: dict[Role, Replica] = {}
    for name, block in written.items():
        path = f"{PATH}.{name}"
        role = _ROLES.get(name.lower())
        if role is None:
            raise CannotConvert(f"{path}: is no role of a TFJob, so the job never ran; remove it or rename it")
        if role in found:
            raise CannotConvert(f"{path}: the TFJob has the role {role} twice; keep one of the two blocks")
        replica = _replica(role, mapping(block, path), path, said)
        if replica is not None:
            found[role] = replica
        if name.lower() == "master" and replica is not None:
            said.warn(path, "becomes chief; TF_CONFIG says chief where it said master, so check the program")
    _check_that_it_trains(found)
    return {role: found[role] for role in Role if role in found}


def warn_of_empty_roles(manifest: Fields, said: Findings) -> None:
    """A warning for each role without a block, such as `Chief:` with nothing below it, which an API server drops."""
    spec = manifest.get("spec")
    roles = spec.get("tfReplicaSpecs") if isinstance(spec, dict) else None
    for name, block in roles.items() if isinstance(roles, dict) else ():
        if block is None:
            role = _ROLES.get(str(name).lower(), name)
            said.warn(
                f"{PATH}.{name}",
                f"is empty, so the TFJob has no such task; if it was meant, write `{role}: {{}}` in the result",
            )


def strategy_of(replicas: Replicas) -> Strategy:
    """The strategy that has these roles. Raises CannotConvert."""
    if Role.PS in replicas:
        if Role.WORKER not in replicas:
            raise CannotConvert(f"{PATH}: strategy ParameterServer needs workers, and there are none; add Worker")
        return Strategy.PARAMETER_SERVER
    if stands_alone(replicas):
        (replica,) = (replicas[role] for role in (Role.CHIEF, Role.WORKER) if role in replicas)
        return Strategy.MIRRORED if _gpus(replica.template) > 1 else Strategy.DEFAULT
    return Strategy.MULTI_WORKER_MIRRORED


def stands_alone(replicas: Replicas) -> bool:
    """Whether one task trains. Then its dtjob has a chief."""
    return sum(replica.replicas for role, replica in replicas.items() if role is not Role.EVALUATOR) == 1


def is_distributed(replicas: Replicas) -> bool:
    """Whether TFJob sets TF_CONFIG: there are several replicas in all."""
    return sum(replica.replicas for replica in replicas.values()) > 1


def _replica(role: Role, block: Fields, path: str, said: Findings) -> Replica | None:
    """The role of this block, None if it has no tasks."""
    warn_of_others(block, path, ("replicas", "restartPolicy", "template"), said)
    count = number(block.get("replicas"), f"{path}.replicas")
    policy = choice(block.get("restartPolicy"), f"{path}.restartPolicy", RESTART_POLICIES) or RESTART_POLICIES[0]
    if count is not None and count < 0:
        raise CannotConvert(f"{path}.replicas: must be at least 0, not {count}")
    if count == 0:
        said.note(path, "has no replicas; it is left out")
        return None
    if role in _SINGLE and count is not None and count > 1:
        said.warn(f"{path}.replicas", f"there is always one {role}, not {count}")
        count = 1
    return Replica(path, 1 if count is None else count, policy, mapping(block.get("template"), f"{path}.template"))


def _check_that_it_trains(found: Replicas) -> None:
    if Role.CHIEF not in found and Role.WORKER not in found:
        raise CannotConvert(f"{PATH}: no task trains; add Chief or Worker")


def _gpus(template: Fields) -> int:
    """How many GPUs the training container asks for."""
    for container in mapping(template.get("spec"), "spec").get("containers") or []:
        if isinstance(container, dict) and container.get("name") == "tensorflow":
            limits = mapping(mapping(container.get("resources"), "resources").get("limits"), "limits")
            amount = str(limits.get(_GPU, "0"))
            return int(amount) if amount.isdecimal() else 0
    return 0
