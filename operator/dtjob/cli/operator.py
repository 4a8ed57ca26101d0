# SPDX-License-Identifier: Apache-2.0
"""`dtjob operator`: starts the operator's process."""

import asyncio
import json
import logging
from datetime import UTC, datetime
from pathlib import Path

from dtjob.bad_input import BadInput
from dtjob.kube import process
from dtjob.kube.election.lease import Election
from dtjob.kube.endpoints.endpoint import Address, EndpointError, parse_endpoint
from dtjob.kube.watching.informer import VersionsWentBack
from dtjob.objects.readers import Readers, parse_scrapers

_TEXT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
OWN_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
"""Where a pod reads which namespace it is in."""


def endpoint(option: str, given: str | None) -> Address | None:
    """Host and port that were given by this option. Raises BadInput on what is none."""
    try:
        return parse_endpoint(given) if given is not None else None
    except ValueError as error:
        raise BadInput(f"{option}: {error}; write for example 127.0.0.1:8080 or :8080") from None


def readers(operator_namespace: str | None, scrapers: str) -> Readers:
    """Who may read the status of jobs' tasks. Raises BadInput on scrapers that are no peers of a NetworkPolicy."""
    try:
        return Readers(operator_namespace or own_namespace(), parse_scrapers(scrapers))
    except ValueError as error:
        raise BadInput(f"--status-scrapers: {error}") from None


def own_namespace() -> str | None:
    """The namespace of this pod, None if this is no pod."""
    return OWN_NAMESPACE.read_text().strip() if OWN_NAMESPACE.is_file() else None


def election(namespace: str | None, name: str, seconds: int) -> Election:
    """The election to take part in. Raises BadInput outside a pod where no namespace is given."""
    namespace = namespace or own_namespace()
    if not namespace:
        raise BadInput("--leader-election: this is no pod, so say in which namespace the Lease is: --lease-namespace")
    return Election(namespace, name, seconds)


def run(options: process.Options, level: str, log_format: str) -> int:
    """Run the operator until SIGTERM or SIGINT. Returns the exit code. Raises NoCluster, and BadInput.

    `level`: of logging. `log_format`: text, logfmt or json.
    """
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter(_TEXT) if log_format == "text" else KeyedFormatter(log_format))
    logging.basicConfig(level=level.upper(), handlers=[handler])
    try:
        asyncio.run(process.run(options))
    except EndpointError as error:
        raise BadInput(str(error)) from None
    except VersionsWentBack as error:
        logging.getLogger(__name__).error("%s: etcd was restored; ending, as only a new process can go on", error)
        return 1
    return 0


class KeyedFormatter(logging.Formatter):
    """One line for each record, with the keys time, level, logger, message and, after an error, exception."""

    def __init__(self, log_format: str) -> None:
        super().__init__()
        self._is_json = log_format == "json"

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line."""
        moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        fields = {
            "time": moment.replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        if self._is_json:
            return json.dumps(fields, ensure_ascii=False)
        free = ("message", "exception")
        return " ".join(
            f"{name}={json.dumps(value, ensure_ascii=False) if name in free else value}"
            for name, value in fields.items()
        )
