# SPDX-License-Identifier: Apache-2.0
"""A pod manifest as a local command: what the kubelet would do with the training container. Pure."""

import json
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dtjob.api.spec.pod_template import TRAINING_CONTAINER
from dtjob.local.processes.addresses import Addresses
from dtjob.objects import labels
from dtjob.objects.manifest import Manifest

_SOURCES = ("secret", "configMap")
"""What variables of `envFrom` come from, as its fields begin."""
_REFERENCE = re.compile(r"\$(?:\$|\((?P<name>[^)]*)\))")


@dataclass(frozen=True)
class Directories:
    """Where a run's files are."""

    cluster_file: Path
    checkpoints: Path
    logs: Path

    def termination_log(self, pod: str) -> Path:
        """The file that stands for the pod's terminationMessagePath."""
        return self.logs / f"{pod}.last.json"

    def log(self, pod: str) -> Path:
        """The log of one pod."""
        return self.logs / f"{pod}.log"


@dataclass(frozen=True)
class Command:
    """What to start for a pod."""

    argv: list[str]
    environment: dict[str, str]


def training_container(pod: Manifest) -> dict[str, Any]:
    """The container that trains; every pod of ours has one."""
    container: dict[str, Any] = next(c for c in pod["spec"]["containers"] if c["name"] == TRAINING_CONTAINER)
    return container


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Kubernetes' expansion: `$(NAME)` of a variable that is known, `$$` for a dollar; anything else stays as it is."""
    return _REFERENCE.sub(lambda match: "$" if match["name"] is None else variables.get(match["name"], match[0]), text)


def container_environment(container: dict[str, Any]) -> dict[str, str]:
    """The container's variables with `$(NAME)` expanded by those above; `valueFrom` needs a cluster and is left out."""
    variables: dict[str, str] = {}
    for variable in container.get("env") or ():
        if "valueFrom" not in variable:
            variables[variable["name"]] = expand(str(variable.get("value", "")), variables)
    return variables


def only_in_a_cluster(pod: Manifest) -> list[str]:
    """What this pod has that a local process does not get, in words."""
    spec = pod["spec"]
    container = training_container(pod)
    found = [f"container {c['name']}" for c in spec["containers"] if c["name"] != TRAINING_CONTAINER]
    found += [f"init container {c['name']}" for c in spec.get("initContainers") or ()]
    found += [f"variable {v['name']} (valueFrom)" for v in container.get("env") or () if "valueFrom" in v]
    sources = [
        (kind, one[f"{kind}Ref"]) for one in container.get("envFrom") or () for kind in _SOURCES if f"{kind}Ref" in one
    ]
    found += [f"variables of {kind} {one['name']}" for kind, one in sources]
    found += [f"workingDir {container['workingDir']}"] if container.get("workingDir") else []
    return found


def local_command(
    pod: Manifest,
    addresses: Addresses,
    files: Directories,
    environ: Mapping[str, str],
    devices: Mapping[str, str] | None = None,
    python: str = sys.executable,
) -> Command:
    """The supervisor process that stands for `pod`.

    The supervisor is run by `python`, addresses become loopback ones, the cluster file and the checkpoint directory
    become local paths (a `gs://` directory stays), also in the program's arguments. Everything else is as in the pod.
    `environ` is dtjob's own.
    `devices`: task to the GPUs of this machine that it sees; a task without has those of `environ`.
    """
    container = training_container(pod)
    variables = container_environment(container)
    hostname = pod["spec"]["hostname"]
    local = dict(variables)
    local["DTJOB_CLUSTER_FILE"] = str(files.cluster_file)
    for name in ("DTJOB_RENDEZVOUS_ADDRESS", "DTJOB_DATA_SERVICE", "DTJOB_DATA_ADDRESS"):
        if name in variables:
            local[name] = addresses.map(variables[name])
    local["DTJOB_STATUS_PORT"] = str(addresses.status_port(hostname))
    local["DTJOB_PARENT"] = str(os.getpid())
    local.setdefault("DTJOB_LOG_LEVEL", "debug")  # whether each epoch is shown is decided here
    for name in ("DTJOB_GPUS", "DTJOB_SOURCE", "DTJOB_REQUIREMENTS"):
        local.pop(name, None)  # here are the GPUs, the files and the packages of this machine
    if (seen := (devices or {}).get(labels.task_id(pod))) is not None:
        local.setdefault("CUDA_VISIBLE_DEVICES", seen)
    local["DTJOB_TERMINATION_LOG"] = str(files.termination_log(pod["metadata"]["name"]))
    _interpreter, *module = container["command"]
    arguments = [expand(text, variables) for text in container.get("args") or ()]
    if "DTJOB_CHECKPOINT" in variables:
        settings = json.loads(variables["DTJOB_CHECKPOINT"])
        in_the_pod = settings["directory"]
        if "://" not in in_the_pod:
            settings["directory"] = str(files.checkpoints)
        local["DTJOB_CHECKPOINT"] = json.dumps(settings)
        arguments = [_with_directory(text, in_the_pod, settings["directory"]) for text in arguments]
    from dtjob.local.processes.launcher import inherited  # with asyncio, which `dtjob run --dry-run` does not need

    return Command([python, *module, *arguments], {**inherited(environ), **local})


def _with_directory(argument: str, in_the_pod: str, here: str) -> str:
    """An argument such as `--model=/checkpoints/model.keras`, with the checkpoint directory as it is here."""
    return re.sub(rf"(?<![^=]){re.escape(in_the_pod)}(?![^/])", lambda _: here, argument, count=1)
