# SPDX-License-Identifier: Apache-2.0
"""Options for what jobs leave out, of the operator and of `dtjob explain`."""

from typing import Annotated

import typer

DefaultImage = Annotated[str | None, typer.Option(metavar="IMAGE", help="Image of jobs without spec.image.")]
DefaultPodLabels = Annotated[
    list[str] | None,
    typer.Option("--default-pod-label", metavar="KEY=VALUE", help="Label of every pod; may be repeated."),
]
DefaultGangProvider = Annotated[
    str | None,
    typer.Option(metavar="PROVIDER", help="Provider of gangs that name none, such as Volcano. Default: Kubernetes."),
]
DefaultPod = Annotated[
    str | None,
    typer.Option(
        metavar="JSON",
        help="Parts of pods whose template lacks them: annotations, env, imagePullSecrets, nodeSelector, tolerations, "
        "priorityClassName, securityContext, resources.",
    ),
]
