"""The options `--default-image` and `--default-pod-label`, which the operator and `dtjob explain` take."""

from __future__ import annotations

from collections.abc import Sequence

from dtjob.cli.bad_input import BadInput
from dtjob.objects.defaults import Defaults, parse_label


def defaults(image: str | None, pod_labels: Sequence[str]) -> Defaults:
    """What the options say. Raises BadInput on an image or a label that cannot be one."""
    if image is not None and (not image or image != "".join(image.split())):
        raise BadInput(f"--default-image: {image!r} is no image; write its name, or leave the option out")
    try:
        return Defaults(image, dict(parse_label(label) for label in pod_labels))
    except ValueError as error:
        raise BadInput(f"--default-pod-label: {error}") from None
