# SPDX-License-Identifier: Apache-2.0
"""The arguments of commands about a cluster and about dtjob itself."""

import typer

from dtjob import __version__
from dtjob.cli.commands.options import Context, Kubeconfig, Namespace, connected


def doctor(namespace: Namespace = None, kubeconfig: Kubeconfig = None, context: Context = None) -> None:
    """Check whether a cluster can run jobs.

    It looks at definition, rights, operator, nodes, GPUs, storage, queues and gangs. Exit code 1: there is a problem.
    What you may not look at is said.

    Example: dtjob doctor
    """
    from dtjob.cli.doctor.finding import Level
    from dtjob.cli.doctor.looks import look_at_all

    problems = 0
    for finding in look_at_all(connected(kubeconfig, context, namespace)):
        problems += finding.level is Level.PROBLEM
        typer.echo(str(finding))
    raise typer.Exit(1 if problems else 0)


def check(namespace: Namespace = None, kubeconfig: Kubeconfig = None) -> None:
    """Ask the API server, with the rights of an operator, whether it serves jobs. `helm test` runs this in a pod.

    Example: dtjob check -n team
    """
    from dtjob.api.names import KIND

    cluster = connected(kubeconfig, None, namespace)
    count = len(cluster.list(KIND, everywhere=namespace is None))
    typer.echo(f"the cluster serves {KIND}s; there are {count} in {namespace or 'all namespaces'}")


def version(namespace: Namespace = None, kubeconfig: Kubeconfig = None, context: Context = None) -> None:
    """Show the versions of dtjob and of the operator.

    Example: dtjob version
    """
    from dtjob.cli.doctor.version import of_operator
    from dtjob.client.errors import ClientError

    typer.echo(f"dtjob {__version__}")
    try:
        typer.echo(of_operator(connected(kubeconfig, context, namespace)))
    except ClientError as error:
        typer.echo(f"operator: {error}", err=True)
