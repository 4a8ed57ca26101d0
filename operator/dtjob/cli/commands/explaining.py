# SPDX-License-Identifier: Apache-2.0
"""The arguments of `dtjob explain`."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from dtjob.cli.commands.default_options import DefaultGangProvider, DefaultImage, DefaultPod, DefaultPodLabels
from dtjob.cli.commands.options import Context, Kubeconfig, Namespace, Output, connected

ManifestFile = Annotated[Path, typer.Argument(metavar="FILE", help="The manifest of a job.")]


def explain(
    file: ManifestFile,
    output: Annotated[
        Output,
        typer.Option("--output", "-o", help="Form of the output. yaml: the objects in full. json: everything."),
    ] = Output.TEXT,
    default_image: DefaultImage = None,
    default_pod_label: DefaultPodLabels = None,
    default_pod: DefaultPod = None,
    default_gang_provider: DefaultGangProvider = None,
    of_cluster: Annotated[
        bool, typer.Option("--cluster", help="Use the namespace and the operator's defaults of the cluster.")
    ] = False,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Show what a job becomes in a cluster. It shows tasks, hosts, TF_CONFIG, failure rules and objects.

    Examples:
        dtjob explain job.yaml
        dtjob explain job.yaml --cluster -n team
    """
    from dtjob.cli.default_options import defaults
    from dtjob.cli.explain import explanation as explaining
    from dtjob.manifests.job_file import read_job

    render = {
        Output.TEXT: explaining.as_text,
        Output.YAML: explaining.as_yaml,
        Output.JSON: explaining.as_json,
    }
    given = defaults(default_image, default_pod_label or [], default_gang_provider, default_pod)
    job = read_job(file)
    if of_cluster:
        from dtjob.cli.explain.of_cluster import defaults_of, in_namespace

        found = connected(kubeconfig, context, namespace)
        job, (given, said) = in_namespace(job, found.namespace), defaults_of(found)
        if said:
            typer.echo(f"note: {said}", err=True)
    # Piece by piece: with each task's TF_CONFIG, which has all addresses, the whole is half a GB for 4,000 workers.
    sys.stdout.writelines(render[output](job, given))
    sys.stdout.flush()
