# SPDX-License-Identifier: Apache-2.0
"""A pod template of a TFJob as one of dtjob: what belongs to dtjob is taken out, and the rest stays."""

from dataclasses import dataclass
from typing import Any

from dtjob.api.job import GROUP, MANAGED_BY_LABEL
from dtjob.api.spec.pod_template import TRAINING_CONTAINER
from dtjob.cli.convert.containers import with_own_environment, with_text_quantities
from dtjob.cli.convert.fields import Fields, items, mapping, warn_of_others, without_unknown_fields
from dtjob.cli.convert.findings import CannotConvert, Findings
from dtjob.cli.convert.names import renamed
from dtjob.cli.convert.security import kept_as_it_was

_OURS = {
    "hostname": "dtjob sets the host name that TF_CONFIG has",
    "subdomain": "dtjob sets the name of the Service of the job",
    "restartPolicy": "TFJob replaces it with the restartPolicy of the role, and so does failurePolicy",
}
_OF_A_SERVER = ("creationTimestamp", "name", "generateName", "namespace")
"""Fields of a template's metadata that no controller reads."""
_CONTAINERS = ("containers", "initContainers")


@dataclass(frozen=True)
class Template:
    """A pod template whose training container is apart."""

    metadata: Fields
    pod: Fields
    """Without the training container."""
    training: Fields
    path: str


def read_template(template: Fields, path: str, said: Findings) -> Template:
    """The template at this path. Raises CannotConvert where it has no training container with an image."""
    warn_of_others(template, path, ("metadata", "spec"), said)
    where = f"{path}.spec"
    pod = without_unknown_fields(mapping(template.get("spec"), where), where, said)
    for name, why in _OURS.items():
        if name in pod:
            said.warn(f"{where}.{name}", f"{why}; it is left out")
    pod = {name: value for name, value in pod.items() if name not in _OURS}
    for kind in _CONTAINERS:
        if kind in pod:
            found = enumerate(items(pod[kind], f"{where}.{kind}"))
            pod[kind] = [_container(one, f"{where}.{kind}[{at}]", said) for at, one in found]
    pod = kept_as_it_was(renamed(pod, where, said), where, said)
    if {"serviceAccountName", "serviceAccount"} & pod.keys():
        pod.setdefault("automountServiceAccountToken", True)
    metadata = _metadata(mapping(template.get("metadata"), f"{path}.metadata"), f"{path}.metadata", said)
    training = [one for one in pod.get("containers") or [] if one.get("name") == TRAINING_CONTAINER]
    if len(training) != 1:
        raise CannotConvert(
            f"{where}.containers: {len(training)} containers are named {TRAINING_CONTAINER}; TFJob needs exactly one"
        )
    if not isinstance(training[0].get("image"), str) or not training[0]["image"]:
        raise CannotConvert(f"{where}.containers: the container {TRAINING_CONTAINER} has no image")
    others = [one for one in pod["containers"] if one is not training[0]]
    return Template(metadata, {**pod, "containers": others}, training[0], path)


def _container(value: Any, path: str, said: Findings) -> Fields:
    return with_text_quantities(with_own_environment(mapping(value, path), path, said), path)


def _metadata(metadata: Fields, path: str, said: Findings) -> Fields:
    found: Fields = {}
    labels = mapping(metadata.get("labels"), f"{path}.labels")
    for name in labels:
        if name.startswith(f"{GROUP}/") or name == MANAGED_BY_LABEL:
            said.warn(f"{path}.labels.{name}", "dtjob sets this label; it is left out")
    labels = {
        name: value for name, value in labels.items() if not name.startswith(f"{GROUP}/") and name != MANAGED_BY_LABEL
    }
    annotations = mapping(metadata.get("annotations"), f"{path}.annotations")
    found |= {"labels": labels} if labels else {}
    found |= {"annotations": annotations} if annotations else {}
    for name in metadata:
        if name in _OF_A_SERVER:
            said.note(f"{path}.{name}", "has no effect in a template; it is left out")
        elif name not in ("labels", "annotations"):
            said.warn(f"{path}.{name}", "a template of dtjob has labels and annotations only; it is left out")
    return found
