"""`dtjob operator`: starts the operator's process."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Sequence
from pathlib import Path

from kubernetes.aio.config import ConfigException

from dtjob import runtime
from dtjob.commands.bad_input import BadInput

LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def run(namespaces: Sequence[str], kubeconfig: Path | None, liveness: str | None, verbose: bool) -> int:
    """Run the operator until SIGTERM or SIGINT. Returns the exit code 0. Raises BadInput where there is no cluster."""
    if kubeconfig is not None:
        if not kubeconfig.is_file():
            raise BadInput(f"--kubeconfig: {kubeconfig} is not a file")
        os.environ["KUBECONFIG"] = str(kubeconfig)  # kopf and our own client both look here
    logging.basicConfig(level=logging.DEBUG if verbose else logging.INFO, format=LOG_FORMAT)
    options = runtime.Options(
        namespaces=namespaces,
        kubeconfig=str(kubeconfig) if kubeconfig else None,
        liveness_endpoint=f"http://{liveness}/healthz" if liveness else None,
    )
    try:
        asyncio.run(runtime.run(options))
    except ConfigException as error:
        hint = "give --kubeconfig FILE, set KUBECONFIG, or run in a pod with a service account"
        raise BadInput(f"no cluster is configured ({error}); {hint}") from None
    return 0
