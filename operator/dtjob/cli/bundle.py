# SPDX-License-Identifier: Apache-2.0
"""`dtjob debug-bundle`: what somebody needs who looks into a problem, in one archive. Secrets are left out."""

import asyncio
import io
import re
import tarfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from dtjob import __version__
from dtjob.api.names import KIND, TRAINING_CONTAINER
from dtjob.cli.watching.listing import event_table
from dtjob.client.cluster import Cluster
from dtjob.client.errors import ClientError
from dtjob.client.verbs.pods import events, in_order, selector
from dtjob.client.verbs.reports import status_port
from dtjob.client.verbs.words import status_lines
from dtjob.manifests.manifest_yaml import written

_COMMANDS = ("command", "args")
REMOVED = "(removed by dtjob debug-bundle)"
_SECRET = re.compile(r"token|secret|passw|credential|key|auth|private", re.I)
_KNOWN = re.compile(
    r"(?!TF_VAR_)(?:DTJOB|TF|NCCL|CUDA|NVIDIA|XLA|OMP|GRPC|KERAS)_\w+|PYTHON(?:HASHSEED|PATH|UNBUFFERED)"
)
"""Variables of training, whose values explain a problem. Others are removed, such as those of Terraform (TF_VAR_)."""
_KNOWN_WORD = re.compile(
    r"python3?|-m|dtjob_trainer|(?:\S*/)?[\w-]+\.py|-[a-z]|--[\w.-]+|-?[\d.]+(?:e-?\d+)?|true|false", re.I
)
"""Words of a command line without a secret: options without their values, numbers, scripts.

A word such as `-pPASSWORD` contains a value, so it is removed."""
_KNOWN_ANNOTATION = re.compile(r"([\w-]+\.)*(dtjob\.dev|kubernetes\.io|k8s\.io|helm\.sh|volcano\.sh)/.*")
_LOGIN = re.compile(r"(?<=://)[^/@\s]+(?=@)")
"""User and password in a URL."""
_PARAMETER = re.compile(r"([?&][\w.%-]*(?:token|secret|passw|credential|key|auth|sig)[\w.%-]*=)[^&#\s\"']+", re.I)
"""A parameter of a URL such as that of a bucket which is signed."""


def collect(cluster: Cluster, name: str, file: Path, say: Callable[[str], None]) -> list[str]:
    """Write the archive, and `say` so before. Returns the names of its files.

    Raises ClientError if there is no such job.
    """
    job = cluster.get(KIND, name)
    names = []
    with tarfile.open(file, "w:gz") as archive:
        say(f"{name}: collecting its objects, events, logs and metrics")
        for path, text in _files(cluster, job):
            data = _without_passwords(text).encode()
            entry = tarfile.TarInfo(f"{name}/{path}")
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
            names.append(path)
    return names


def without_secrets(value: Any) -> Any:
    """The object without literal values of variables, arguments and annotations but known ones, without passwords in
    URLs, and without what other tools remember."""
    if isinstance(value, str):
        return _without_passwords(value)
    if isinstance(value, list):
        return [without_secrets(item) for item in value]
    if not isinstance(value, dict):
        return value
    name = value.get("name")
    if isinstance(name, str) and "value" in value and (not _KNOWN.fullmatch(name) or _SECRET.search(name)):
        return {**value, "value": REMOVED}
    if isinstance(notes := value.get("annotations"), dict):
        known = {at: text if _KNOWN_ANNOTATION.fullmatch(at) else REMOVED for at, text in notes.items()}
        value = {**value, "annotations": known}
    left_out = ("managedFields", "kubectl.kubernetes.io/last-applied-configuration")
    return {
        name: list(map(_argument, item, ["", *item]))
        if name in _COMMANDS and isinstance(item, list)
        else without_secrets(item)
        for name, item in value.items()
        if name not in left_out
    }


def _without_passwords(text: str) -> str:
    return _PARAMETER.sub(rf"\1{REMOVED}", _LOGIN.sub(REMOVED, text))


def _argument(word: Any, before: Any) -> str:
    """A word of a command line, without a value that nobody knows. `before`: the word before it."""
    option, equals, value = str(word).partition("=")
    if not (equals and option.startswith("-")):
        option, value, equals = (str(before) if str(before).startswith("-") else ""), str(word), ""
        if value.startswith("-") and not re.fullmatch(r"-[\d.]+", value):
            option = ""  # another option
    is_known = _KNOWN_WORD.fullmatch(value) and not _SECRET.search(option)
    shown = _without_passwords(value) if is_known else REMOVED
    return f"{option}={shown}" if equals else shown


def _files(cluster: Cluster, job: dict[str, Any]) -> Iterator[tuple[str, str]]:
    name = job["metadata"]["name"]
    yield "version.txt", f"dtjob {__version__}\n"
    yield "status.txt", "\n".join(status_lines(job)) + "\n"
    yield "job.yaml", written([without_secrets(job)])
    yield _tried("events.txt", lambda: "\n".join(event_table(events(cluster, name))) + "\n")
    for kind in ("Pod", "Service", "ConfigMap", "PersistentVolumeClaim", "NetworkPolicy"):
        yield _tried(f"{kind.lower()}s.yaml", partial(_objects, cluster, kind, name))
    try:
        pods = in_order(cluster.list("Pod", selector(name)))
    except ClientError:
        return
    for pod in pods:
        at = pod["metadata"]["name"]
        yield _tried(f"logs/{at}.log", partial(_log, cluster, at))
        for path in ("status", "metrics"):
            yield _tried(f"{path}/{at}.txt", partial(_asked, cluster, at, status_port(job), path))


def _objects(cluster: Cluster, kind: str, job: str) -> str:
    found = cluster.list(kind, selector(job))
    return written([without_secrets({"kind": kind, **one}) for one in found])


def _log(cluster: Cluster, pod: str) -> str:
    return cluster.log(pod, container=TRAINING_CONTAINER, timestamps=True).decode(errors="replace")


def _asked(cluster: Cluster, pod: str, port: int, path: str) -> str:
    from dtjob.client.streams import answer  # its import takes a while

    return asyncio.run(answer(cluster, pod, port, f"/{path}")).decode(errors="replace")


def _tried(path: str, read: Callable[[], str]) -> tuple[str, str]:
    """The file, or the reason why it is missing."""
    try:
        return path, read()
    except ClientError as error:
        return f"{path}.error", f"{error}\n"
