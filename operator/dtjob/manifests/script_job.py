# SPDX-License-Identifier: Apache-2.0
"""The job of a Python script that has no manifest: `dtjob run train.py --workers 2`."""

import re
from pathlib import Path
from typing import Any

from dtjob.api.names import API_VERSION, KIND, TRAINING_CONTAINER
from dtjob.api.quantity import is_quantity
from dtjob.api.spec.strategy import Strategy
from dtjob.api.words import meant
from dtjob.bad_input import BadInput
from dtjob.manifests.script import Script
from dtjob.objects.pod.accelerators import GPU_RESOURCE

LONGEST_NAME = 40
"""Characters of a job's name that come from the name of the script."""


def manifest(script: Script, gpus: int) -> dict[str, Any]:
    """The manifest of the script's job, without its settings. `gpus`: of this machine, which decide where the script
    does not say how many it wants. Raises BadInput for options that do not fit."""
    strategy = _strategy(script, script.gpus or gpus)
    program: dict[str, Any] = {"entrypoint": str(script.file)}
    if script.arguments:
        program["args"] = list(script.arguments)
    program |= _variables(script)
    spec = {
        "strategy": strategy.value,
        "program": program,
        "replicaSpecs": _replica_specs(script, strategy),
        "checkpoint": {"storage": _storage(script)},
        "tensorBoard": {},
    }
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": script.name or _name(script.file)},
        "spec": spec,
    }


def _strategy(script: Script, gpus: int) -> Strategy:
    if script.strategy is not None:
        if script.strategy not in list(Strategy):
            word = meant(script.strategy, Strategy)
            raise BadInput(
                f"--strategy: {script.strategy} is none of {', '.join(Strategy)}{f'; write {word}' if word else ''}"
            )
        return Strategy(script.strategy)
    if script.ps:
        return Strategy.PARAMETER_SERVER
    if script.workers is not None and script.workers > 1:
        return Strategy.MULTI_WORKER_MIRRORED
    return Strategy.MIRRORED if gpus > 1 else Strategy.DEFAULT


def _replica_specs(script: Script, strategy: Strategy) -> dict[str, Any]:
    found: dict[str, Any]
    if script.ps is not None and strategy is not Strategy.PARAMETER_SERVER:
        raise BadInput(f"--ps: only ParameterServer has parameter servers, and --strategy is {strategy}; leave it out")
    match strategy:
        case Strategy.PARAMETER_SERVER:
            found = {
                "chief": {},
                "worker": {"replicas": 2 if script.workers is None else script.workers},
                "ps": {"replicas": 1 if script.ps is None else script.ps},
            }
        case Strategy.MULTI_WORKER_MIRRORED:
            found = {"worker": {"replicas": 2 if script.workers is None else script.workers}}
        case _:
            if script.workers not in (None, 1):
                raise BadInput(
                    f"--workers: {strategy} trains in one task; use --strategy MultiWorkerMirrored or ParameterServer"
                )
            found = {"chief": {}}
    computing = ("worker",) if strategy is Strategy.PARAMETER_SERVER else tuple(found)
    if script.evaluator:
        found["evaluator"] = {}
    return {role: {**one, **_of_role(script, computes=role in computing)} for role, one in found.items()}


def _storage(script: Script) -> dict[str, Any]:
    if script.kept_at is not None:
        return {"volume": {"hostPath": {"path": str(script.kept_at), "type": "DirectoryOrCreate"}}}
    return {"volume": {"emptyDir": {}}} if script.checkpoint is None else {"uri": script.checkpoint}


def _name(file: Path) -> str:
    """A job's name, made of the script's: lower-case letters, digits and hyphens."""
    name = re.sub(r"[^a-z0-9]+", "-", file.stem.lower()).strip("-")[:LONGEST_NAME].strip("-")
    return name if name[:1].isalpha() else f"job-{name}".rstrip("-")


def _variables(script: Script) -> dict[str, Any]:
    """The fields of `program` with the variables. Raises BadInput."""
    values: dict[str, str] = {}
    for given in script.env:
        name, equals, value = given.partition("=")
        if not name or not equals:
            raise BadInput(f"--env: {given!r} is not NAME=VALUE; --env-from-secret NAME takes the keys of a Secret")
        values[name] = value
    for secret in script.secrets:
        if secret.split() != [secret]:
            raise BadInput(f"--env-from-secret: {secret!r} is no name; write the name of a Secret")
    env = [{"name": name, "value": value} for name, value in values.items()]
    env_from = [{"secretRef": {"name": secret}} for secret in script.secrets]
    return {**({"env": env} if env else {}), **({"envFrom": env_from} if env_from else {})}


def _of_role(script: Script, *, computes: bool) -> dict[str, Any]:
    """The fields of one role. `computes`: its tasks use the GPUs. Raises BadInput.

    CPU and memory are limits. Kubernetes then reserves as much, so that the job starts under any quota.
    """
    limits: dict[str, Any] = {}
    for option, resource, amount in (("--cpu", "cpu", script.cpu), ("--memory", "memory", script.memory)):
        if amount is not None:
            if not is_quantity(amount):
                raise BadInput(f"{option}: {amount!r} is no quantity; write for example 4, 500m or 16Gi")
            limits[resource] = amount
    if script.gpus and computes:
        limits[GPU_RESOURCE] = script.gpus
    return {**({"resources": {"limits": limits}} if limits else {}), **_mounts(script)}


def _mounts(script: Script) -> dict[str, Any]:
    """The template with the claims, each claim as one volume."""
    names: dict[str, str] = {}
    mounts: list[dict[str, Any]] = []
    for given in script.mounts:
        claim, _, rest = given.partition(":")
        path, _, mode = rest.partition(":")
        if claim.split() != [claim] or not path.startswith("/") or mode not in ("", "ro"):
            raise BadInput(f"--mount: {given!r} is not CLAIM:/PATH or CLAIM:/PATH:ro")
        name = names.setdefault(claim, f"mount-{len(names) + 1}")
        mounts.append({"name": name, "mountPath": path, **({"readOnly": True} if mode else {})})
    if not mounts:
        return {}
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": claim}} for claim, name in names.items()]
    container = {"name": TRAINING_CONTAINER, "volumeMounts": mounts}
    return {"template": {"spec": {"containers": [container], "volumes": volumes}}}
