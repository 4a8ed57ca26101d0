# SPDX-License-Identifier: Apache-2.0
"""A pod template of a TFJob as one of dtjob: what belongs to dtjob is taken out, and the rest stays.

Blocks of the TFJob are changed where they are: `read` has made a copy.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dtjob.api.job import GROUP, MANAGED_BY_LABEL
from dtjob.api.spec.network import Network
from dtjob.api.spec.pod_template import TRAINING_CONTAINER
from dtjob.cli.convert.reading import CannotConvert, Fields, Findings
from dtjob.objects import labels
from dtjob.objects.pod.security import CONTAINER_SECURITY, POD_SECURITY

_OURS = {
    "hostname": "dtjob sets the host name that TF_CONFIG has",
    "subdomain": "dtjob sets the name of the Service of the job",
    "restartPolicy": "TFJob replaces it with the restartPolicy of the role, and so does failurePolicy",
}
_OF_A_SERVER = ("creationTimestamp", "name", "generateName", "namespace")
"""Fields of a template's metadata that no controller reads."""
_OUR_VARIABLES = "DTJOB_"
_OUR_PORTS = ("tensorflow", "status")
_PORT_NAME = "tfjob-port"
_AS_IT_WAS = (
    "as in TFJob: null leaves a key to the image and the cluster. kubectl apply drops nulls: write kubectl apply "
    "--server-side. To run as user 1000 without privileges, remove the nulls"
)
_GROUP = "training.kubeflow.org/"
_LABELS = {
    f"{_GROUP}job-name": labels.JOB_NAME,
    f"{_GROUP}replica-type": labels.ROLE,
    f"{_GROUP}replica-index": labels.INDEX,
}
"""Label of TFJob's pods to that of dtjob's, with the same values."""
_ROLE_LABELS = (f"{_GROUP}replica-type", labels.ROLE)
_FIELD_PATH = re.compile(r"metadata\.labels\['([^']+)'\]")
_SELECTORS = ("matchLabels", "matchExpressions", "matchLabelKeys", "mismatchLabelKeys", "fieldPath")


@dataclass(frozen=True)
class Template:
    """A pod template whose training container is apart."""

    metadata: Fields
    pod: Fields
    """Without the training container."""
    training: Fields
    path: str
    """Of the training container."""


def read_template(template: Fields, path: str, said: Findings) -> Template:
    """The template at this path. Raises CannotConvert where it has no training container with an image."""
    where = f"{path}.spec"
    pod = template.get("spec", {})
    for name in filter(pod.__contains__, _OURS):
        said.warn(f"{where}.{name}", f"{_OURS[name]}; it is left out")
    pod = renamed({name: value for name, value in pod.items() if name not in _OURS}, where, said)
    for kind in ("containers", "initContainers"):
        for at, container in enumerate(pod.get(kind, ())):
            _clean_variables(container, f"{where}.{kind}[{at}]", said)
            _write_amounts_as_text(container.get("resources", {}))
            _keep_security(container)
    pod["securityContext"] = {**dict.fromkeys(POD_SECURITY), **pod.get("securityContext", {})}
    said.note("spec.tfReplicaSpecs.*.template.spec.securityContext", _AS_IT_WAS)
    if {"serviceAccountName", "serviceAccount"} & pod.keys():
        pod.setdefault("automountServiceAccountToken", True)
    metadata = _metadata(template.get("metadata", {}), f"{path}.metadata", said)
    training = [one for one in pod.get("containers", ()) if one.get("name") == TRAINING_CONTAINER]
    if len(training) != 1:
        raise CannotConvert(
            f"{where}.containers: {len(training)} containers are named {TRAINING_CONTAINER}; TFJob needs exactly one"
        )
    if not training[0].get("image"):
        raise CannotConvert(f"{where}.containers: the container {TRAINING_CONTAINER} has no image")
    pod["containers"] = [one for one in pod["containers"] if one is not training[0]]
    return Template(metadata, pod, training[0], f"{where}.containers[name={TRAINING_CONTAINER}]")


def port_of(container: Fields) -> int:
    """The port of TensorFlow in this container, the default if it names none."""
    ports = (one.get("containerPort") for one in container.get("ports", ()) if one.get("name") == _PORT_NAME)
    return next(filter(None, ports), Network().port)


def drop_our_ports(container: Fields, port: int, path: str, said: Findings) -> None:
    """Leave out the port that dtjob adds, network.port."""
    kept = []
    for at, one in enumerate(container.pop("ports", ())):
        where = f"{path}.ports[{at}]"
        same = one.get("containerPort") == port and one.get("protocol", "TCP") == "TCP"
        if same or one.get("name") == _PORT_NAME:
            if {"hostPort", "hostIP"} & one.keys():
                said.warn(where, "dtjob adds the port of TensorFlow without hostPort and hostIP; they are left out")
            if not same:
                said.warn(where, f"all roles of a dtjob have one port for TensorFlow, which is {port}")
            continue
        if one.get("name") in _OUR_PORTS:
            said.warn(f"{where}.name", f"dtjob has a port named {one.pop('name')}; the name is left out")
        kept.append(one)
    if kept:
        container["ports"] = kept


def sets_tf_config(container: Fields) -> bool:
    """Whether the container has a TF_CONFIG of its own."""
    return any(variable.get("name") == "TF_CONFIG" for variable in container.get("env", ()))


def drop_tf_config(container: Fields, path: str, why: str, said: Findings) -> None:
    """Leave out a TF_CONFIG of its own, with a warning that says why."""
    if sets_tf_config(container):
        container["env"] = [variable for variable in container["env"] if variable.get("name") != "TF_CONFIG"]
        said.warn(f"{path}.env", f"TF_CONFIG: {why}; it is left out")


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
            new = f"{job}-{_role(found[1])}-{found[2]}.{job}"
            said.warn(where, f"names the host {found[0]}; in dtjob it is {new}; change it")


def _clean_variables(container: Fields, path: str, said: Findings) -> None:
    """Keep each variable once. In a pod the last one of a name counts."""
    last: dict[str, Fields] = {}
    for at, variable in enumerate(container.get("env", ())):
        where, name = f"{path}.env[{at}]", str(variable.get("name", ""))
        if name.startswith(_OUR_VARIABLES):
            said.warn(where, f"variables that begin with {_OUR_VARIABLES} belong to dtjob; it is left out")
            continue
        if last.pop(name, None) is not None:
            said.note(where, f"{name} is there twice; the last one counts in a pod, and it is kept")
        last[name] = variable
    if "env" in container:
        container["env"] = list(last.values())


def _write_amounts_as_text(resources: Fields) -> None:
    """Amounts are whole numbers or texts, as dtjob takes them."""
    for kind in resources.keys() & {"limits", "requests"}:
        resources[kind] = {name: str(one) if isinstance(one, float) else one for name, one in resources[kind].items()}


def _keep_security(container: Fields) -> None:
    """Set a null for each key that dtjob would set and the TFJob leaves out: pods run as their images say."""
    theirs = container.get("securityContext", {})
    if "capabilities" in theirs:
        theirs["capabilities"] = {"drop": None, **theirs["capabilities"]}
    is_free = theirs.get("privileged") and "allowPrivilegeEscalation" not in theirs
    nulls = ("capabilities",) if is_free else CONTAINER_SECURITY
    container["securityContext"] = {**dict.fromkeys(nulls), **theirs}


def _metadata(metadata: Fields, path: str, said: Findings) -> Fields:
    found = {name: dict(metadata[name]) for name in ("labels", "annotations") if metadata.get(name)}
    for name in list(found.get("labels", ())):
        if name.startswith(f"{GROUP}/") or name == MANAGED_BY_LABEL:
            said.warn(f"{path}.labels.{name}", "dtjob sets this label; it is left out")
            del found["labels"][name]
    for name in metadata:
        if name in _OF_A_SERVER:
            said.note(f"{path}.{name}", "has no effect in a template; it is left out")
        elif name not in ("labels", "annotations"):
            said.warn(f"{path}.{name}", "a template of dtjob has labels and annotations only; it is left out")
    return {name: values for name, values in found.items() if values}


def _label(name: str, path: str, said: Findings) -> str:
    if name.startswith(_GROUP) and name not in _LABELS:
        said.warn(path, f"dtjob's pods have no label {name} (`dtjob explain -o yaml` shows theirs); change it")
    return _LABELS.get(name, name)


def _role(value: Any) -> str:
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
