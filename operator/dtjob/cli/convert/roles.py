# SPDX-License-Identifier: Apache-2.0
"""The roles of a TFJob, and the strategy that has them."""

from collections.abc import Mapping
from dataclasses import dataclass

from dtjob.api.spec.replica_specs import Role
from dtjob.api.spec.strategy import Strategy
from dtjob.cli.convert.reading import CannotConvert, Fields, Findings
from dtjob.cli.convert.template import Template, read_template

PATH = "spec.tfReplicaSpecs"
RESTART_POLICIES = ("Never", "Always", "OnFailure", "ExitCode")
_ROLES = {"chief": Role.CHIEF, "master": Role.CHIEF, **{role.value: role for role in Role}}


@dataclass(frozen=True)
class Replica:
    """One role of the TFJob."""

    path: str
    count: int
    restart_policy: str
    template: Template


Replicas = Mapping[Role, Replica]


def replicas_of(spec: Fields, said: Findings) -> dict[Role, Replica]:
    """The roles in the order of dtjob. Raises CannotConvert."""
    found: dict[Role, Replica] = {}
    for name, block in spec.get("tfReplicaSpecs", {}).items():
        path = f"{PATH}.{name}"
        role = _ROLES.get(name.lower())
        if role is None:
            raise CannotConvert(f"{path}: is no role of a TFJob, so the job never ran; remove it or rename it")
        if role in found:
            raise CannotConvert(f"{path}: the TFJob has the role {role} twice; keep one of the two blocks")
        replica = _replica(role, block, path, said)
        if replica is not None:
            found[role] = replica
        if name.lower() == "master" and replica is not None:
            said.warn(path, "becomes chief; TF_CONFIG says chief where it said master, so check the program")
    if not found.keys() & {Role.CHIEF, Role.WORKER}:
        raise CannotConvert(f"{PATH}: no task trains; add Chief or Worker")
    return {role: found[role] for role in Role if role in found}


def warn_of_empty_roles(manifest: Fields, said: Findings) -> None:
    """A warning for each role without a block, such as `Chief:` with nothing below it, which an API server drops."""
    roles = (manifest.get("spec") or {}).get("tfReplicaSpecs") or {}
    for name in (name for name, block in roles.items() if block is None):
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
        gpus = str(replica.template.training.get("resources", {}).get("limits", {}).get("nvidia.com/gpu", ""))
        return Strategy.MIRRORED if gpus.isdecimal() and int(gpus) > 1 else Strategy.DEFAULT
    return Strategy.MULTI_WORKER_MIRRORED


def stands_alone(replicas: Replicas) -> bool:
    """Whether one task trains. Then its dtjob has a chief."""
    return members(replicas) == 1


def members(replicas: Replicas) -> int:
    """How many tasks train."""
    return sum(replica.count for role, replica in replicas.items() if role is not Role.EVALUATOR)


def is_distributed(replicas: Replicas) -> bool:
    """Whether TFJob sets TF_CONFIG: there are several replicas in all."""
    return sum(replica.count for replica in replicas.values()) > 1


def _replica(role: Role, block: Fields, path: str, said: Findings) -> Replica | None:
    """The role of this block, None if it has no tasks."""
    count, policy = block.get("replicas", 1), block.get("restartPolicy") or RESTART_POLICIES[0]
    if policy not in RESTART_POLICIES:
        raise CannotConvert(f"{path}.restartPolicy: must be one of {', '.join(RESTART_POLICIES)}, not {policy!r}")
    if count < 0:
        raise CannotConvert(f"{path}.replicas: must be at least 0, not {count}")
    if count == 0:
        said.note(path, "has no replicas; it is left out")
        return None
    if role in (Role.CHIEF, Role.EVALUATOR) and count > 1:
        said.warn(f"{path}.replicas", f"there is always one {role}, not {count}")
        count = 1
    return Replica(path, count, policy, read_template(block.get("template", {}), f"{path}.template", said))
