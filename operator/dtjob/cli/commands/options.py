# SPDX-License-Identifier: Apache-2.0
"""Options that several commands have."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from dtjob.client.cluster import Cluster

Namespace = Annotated[
    str | None, typer.Option("--namespace", "-n", help="Left out: the namespace of the kubeconfig's context.")
]
Kubeconfig = Annotated[Path | None, typer.Option(metavar="FILE", help="Left out: as kubectl finds it.")]
Context = Annotated[str | None, typer.Option(metavar="NAME", help="A context of the kubeconfig.")]
ScriptStrategy = Annotated[
    str | None,
    typer.Option(
        "--strategy",
        metavar="STRATEGY",
        help="Of a script's job: Mirrored, ParameterServer, … Left out: what fits the other options and the GPUs.",
    ),
]
Workers = Annotated[int | None, typer.Option(min=1, help="Workers of a script's job.")]
ParameterServers = Annotated[int | None, typer.Option("--ps", min=1, help="Parameter servers of a script's job.")]
Evaluator = Annotated[bool, typer.Option("--evaluator", help="Give a script's job an evaluator.")]
Gpus = Annotated[int | None, typer.Option(min=1, help="GPUs of each task that computes.")]
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
    str | None, typer.Option(metavar="NAME", help="Of a script's job. Left out: made of the name of the file.")
]
Arguments = Annotated[
    list[str] | None, typer.Argument(metavar="[-- ARGS]...", help="The arguments of a script.", show_default=False)
]
JobName = Annotated[str, typer.Argument(metavar="JOB", help="Name of a job.")]
Task = Annotated[str | None, typer.Option(metavar="TASK", help="Only this one, such as worker-1, or a role.")]


def connected(kubeconfig: Path | None, context: str | None, namespace: str | None) -> "Cluster":
    """The cluster of these options."""
    from dtjob.client.cluster import connect

    return connect(str(kubeconfig) if kubeconfig else None, context, namespace)
