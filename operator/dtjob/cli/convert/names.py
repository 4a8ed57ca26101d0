# SPDX-License-Identifier: Apache-2.0
"""Names that a TFJob's operator gives, inside a pod template: labels of its pods, and hosts."""

import re
from collections.abc import Iterator
from typing import Any

from dtjob.cli.convert.findings import Findings
from dtjob.objects import labels

_GROUP = "training.kubeflow.org/"
LABELS = {
    f"{_GROUP}job-name": labels.JOB_NAME,
    f"{_GROUP}replica-type": labels.ROLE,
    f"{_GROUP}replica-index": labels.INDEX,
}
"""Label of TFJob's pods to that of dtjob's, with the same values."""
_ROLE_LABELS = (f"{_GROUP}replica-type", labels.ROLE)
_FIELD_PATH = re.compile(r"metadata\.labels\['([^']+)'\]")
_SELECTORS = ("matchLabels", "matchExpressions", "matchLabelKeys", "mismatchLabelKeys", "fieldPath")


def renamed(value: Any, path: str, said: Findings, inside: str = "") -> Any:
    """The part of a pod's spec with dtjob's labels where it selects or reads TFJob's."""
    if isinstance(value, dict):
        found = {}
        for name, item in value.items():
            new = _label(name, path, said) if inside == "matchLabels" else name
            role = inside == "matchLabels" and name in _ROLE_LABELS
            below = name if name in _SELECTORS else inside
            found[new] = _role(item) if role else renamed(item, f"{path}.{name}", said, below)
        if inside == "matchExpressions" and value.get("key") in _ROLE_LABELS:
            found["values"] = [_role(item) for item in value.get("values") or []]
        return found
    if isinstance(value, list):
        return [renamed(item, f"{path}[{at}]", said, inside) for at, item in enumerate(value)]
    if isinstance(value, str) and inside == "fieldPath":
        return _FIELD_PATH.sub(lambda found: f"metadata.labels['{_label(found[1], path, said)}']", value)
    return _label(value, path, said) if inside and isinstance(value, str) else value


def warn_of_hosts(value: Any, path: str, job: str, said: Findings) -> None:
    """A warning for each text that has the name of a TFJob's host, which is another one now."""
    host = re.compile(rf"(?<![\w-]){re.escape(job)}-(chief|master|worker|ps|evaluator)-(\d+)(?![\w-])")
    for where, text in _texts(value, path):
        if found := host.search(text):
            role = "chief" if found[1] == "master" else found[1]
            said.warn(where, f"names the host {found[0]}; in dtjob it is {job}-{role}-{found[2]}.{job}; change it")


def _label(name: str, path: str, said: Findings) -> str:
    if name.startswith(_GROUP) and name not in LABELS:
        said.warn(path, f"dtjob's pods have no label {name} (`dtjob explain -o yaml` shows theirs); change it")
    return LABELS.get(name, name)


def _role(value: Any) -> Any:
    word = str(value).lower()
    return "chief" if word == "master" else word


def _texts(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _texts(item, f"{path}.{name}")
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from _texts(item, f"{path}[{at}]")
    elif isinstance(value, str):
        yield path, value
