# SPDX-License-Identifier: Apache-2.0
"""The options about what jobs leave out, which the operator and `dtjob explain` take: `--default-image`,
`--default-pod-label`, `--default-pod`, `--default-gang-provider`."""

from collections.abc import Sequence
from dataclasses import replace

from dtjob.api.spec.scheduling import GangProvider
from dtjob.bad_input import BadInput
from dtjob.objects.defaults import NO_DEFAULTS, Defaults, PodDefaults, parse_label


def defaults(
    image: str | None, pod_labels: Sequence[str], gang_provider: str | None = None, pods: str | None = None
) -> Defaults:
    """What the options say. Raises BadInput on an image, a label, a provider or parts of a pod that cannot be
    one."""
    if image is not None and (not image or image != "".join(image.split())):
        raise BadInput(f"--default-image: {image!r} is no image; write its name, or leave the option out")
    if gang_provider is not None and gang_provider not in list(GangProvider):
        known = ", ".join(GangProvider)
        raise BadInput(f"--default-gang-provider: {gang_provider!r} is none; write one of {known}")
    provider = GangProvider(gang_provider or NO_DEFAULTS.gang_provider)
    try:
        made = Defaults(image, dict(parse_label(label) for label in pod_labels), gang_provider=provider)
    except ValueError as error:
        raise BadInput(f"--default-pod-label: {error}") from None
    try:
        return replace(made, pods=PodDefaults.parse(pods)) if pods is not None else made
    except ValueError as error:
        raise BadInput(f"--default-pod: {error}") from None
