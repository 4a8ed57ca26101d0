# SPDX-License-Identifier: Apache-2.0
"""Options that several commands have."""

import re
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dtjob.bad_input import BadInput

if TYPE_CHECKING:
    from dtjob.client.cluster import Cluster

Namespace = Annotated[
    str | None,
    typer.Option("--namespace", "-n", metavar="NAME", help="Namespace. Default: that of the kubeconfig's context."),
]
Kubeconfig = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Kubeconfig. Default: the one that kubectl uses.")
]
Context = Annotated[
    str | None, typer.Option(metavar="NAME", help="Context of the kubeconfig. Default: its current context.")
]
Strategy = Annotated[
    str | None,
    typer.Option(
        "--strategy",
        metavar="STRATEGY",
        help="Strategy of a script's job, such as Mirrored. Default: what fits the other options and the GPUs.",
    ),
]
Workers = Annotated[int | None, typer.Option(min=1, metavar="N", help="Workers of a script's job.")]
ParameterServers = Annotated[
    int | None, typer.Option("--ps", min=1, metavar="N", help="Parameter servers of a script's job.")
]
Evaluator = Annotated[bool, typer.Option("--evaluator", help="Add an evaluator to a script's job.")]
Gpus = Annotated[int | None, typer.Option(min=1, metavar="N", help="GPUs of each task that computes.")]
Cpu = Annotated[str | None, typer.Option("--cpu", metavar="AMOUNT", help="CPUs of each task, such as 4 or 500m.")]
Memory = Annotated[str | None, typer.Option("--memory", metavar="AMOUNT", help="Memory of each task, such as 16Gi.")]
Variables = Annotated[
    list[str] | None,
    typer.Option("--env", "-e", metavar="NAME=VALUE", help="Environment variable of each task; may be repeated."),
]
Secrets = Annotated[
    list[str] | None,
    typer.Option(
        "--env-from-secret",
        metavar="NAME",
        help="Secret whose keys become environment variables of each task; may be repeated.",
    ),
]
Mounts = Annotated[
    list[str] | None,
    typer.Option(
        "--mount",
        metavar="CLAIM:/PATH",
        help="PersistentVolumeClaim that each task mounts; CLAIM:/PATH:ro is read-only; may be repeated.",
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="PATH=VALUE",
        help="Field of the manifest, such as spec.failurePolicy.maxRestarts=3; may be repeated.",
    ),
]
Name = Annotated[
    str | None, typer.Option(metavar="NAME", help="Name of a script's job. Default: the name of the file.")
]
Arguments = Annotated[
    list[str] | None, typer.Argument(metavar="-- ARGS…", help="Arguments of the script.", show_default=False)
]
JobName = Annotated[str, typer.Argument(metavar="JOB", help="Name of the job.")]
Task = Annotated[
    str | None,
    typer.Option(metavar="TASK", help="One task, such as worker-1, or a role, such as worker. Default: all tasks."),
]


class Output(StrEnum):
    """How a command answers: for people, or with a whole object."""

    TEXT = "text"
    JSON = "json"
    YAML = "yaml"


_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_DURATION = re.compile(r"(?:\d+[smhd])+|\d+")


def seconds_of(text: str, option: str) -> float:
    """The seconds of `90`, `15m` or `1h30m`, which were given with this option. Raises BadInput."""
    if not _DURATION.fullmatch(text):
        raise BadInput(f"{option}: {text} is no duration; write for example 90s, 15m or 1h30m")
    if text.isdecimal():
        return float(text)
    return float(sum(int(count) * _UNITS[unit] for count, unit in re.findall(r"(\d+)([smhd])", text)))


def connected(kubeconfig: Path | None, context: str | None, namespace: str | None) -> "Cluster":
    """The cluster of these options."""
    from dtjob.client.cluster import connect

    return connect(str(kubeconfig) if kubeconfig else None, context, namespace)
