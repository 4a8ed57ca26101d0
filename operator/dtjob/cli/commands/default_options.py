# SPDX-License-Identifier: Apache-2.0
"""Options for what jobs leave out, of the operator and of `dtjob explain`."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from dtjob.bad_input import BadInput

if TYPE_CHECKING:
    from dtjob.client.cluster import Cluster
    from dtjob.objects.defaults import Defaults

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


def defaults(
    image: str | None, pod_labels: Sequence[str] | None, gang_provider: str | None = None, pods: str | None = None
) -> "Defaults":
    """What the options say. Raises BadInput on an image, a label, a provider or parts of a pod that cannot be one."""
    from dtjob.api.spec.scheduling import GangProvider
    from dtjob.objects.defaults import NO_DEFAULTS, Defaults, PodDefaults, parse_label

    if image is not None and (not image or image != "".join(image.split())):
        raise BadInput(f"--default-image: {image!r} is no image; write its name, or leave the option out")
    if gang_provider is not None and gang_provider not in list(GangProvider):
        known = ", ".join(GangProvider)
        raise BadInput(f"--default-gang-provider: {gang_provider!r} is none; write one of {known}")
    provider, option = GangProvider(gang_provider or NO_DEFAULTS.gang_provider), "--default-pod-label"
    try:
        labels, option = dict(map(parse_label, pod_labels or ())), "--default-pod"
        parts = NO_DEFAULTS.pods if pods is None else PodDefaults.parse(pods)
    except ValueError as error:
        raise BadInput(f"{option}: {error}") from None
    return Defaults(image, labels, gang_provider=provider, pods=parts)


def defaults_of_cluster(cluster: "Cluster") -> "tuple[Defaults, str]":
    """What the operator of a cluster fills in, and a sentence if that cannot be seen. Raises BadInput, ClientError."""
    from dtjob.cli.doctor import operators, values_of
    from dtjob.client.errors import Forbidden
    from dtjob.objects.defaults import NO_DEFAULTS

    try:
        found = operators(cluster)
    except Forbidden:
        return NO_DEFAULTS, "you may not look at the operator of this cluster, so its defaults are not known"
    if not found:
        return NO_DEFAULTS, "the cluster has no operator of dtjob, so there are no defaults"
    options = ("--default-image", "--default-gang-provider", "--default-pod")
    image, provider, pod = (next(iter(values_of(found[0], option)), None) for option in options)
    try:
        return defaults(image, values_of(found[0], "--default-pod-label"), provider, pod), ""
    except BadInput as error:
        raise BadInput(f"the operator of this cluster: {error}") from None
