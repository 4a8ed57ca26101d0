# SPDX-License-Identifier: Apache-2.0
"""Options for what jobs leave out, of the operator and of `dtjob explain`."""

from typing import Annotated

import typer

DefaultImage = Annotated[str | None, typer.Option(metavar="IMAGE", help="The image of jobs that leave out spec.image.")]
DefaultPodLabels = Annotated[
    list[str] | None,
    typer.Option("--default-pod-label", metavar="KEY=VALUE", help="A label for every pod; may be repeated."),
]
DefaultGangProvider = Annotated[
    str | None,
    typer.Option(metavar="PROVIDER", help="For gangs that name none: Kubernetes (so where left out), Volcano, …"),
]
DefaultPod = Annotated[
    str | None,
    typer.Option(
        metavar="JSON",
        help="For pods whose template leaves it out: annotations, env, imagePullSecrets, nodeSelector, tolerations, "
        "priorityClassName, securityContext, resources.",
    ),
]
