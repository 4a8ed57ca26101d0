"""`dtjob operator`: starts the operator's process."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from kubernetes.aio.config import ConfigException

from dtjob import runtime
from dtjob.commands.bad_input import BadInput

LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def run(options: runtime.Options, verbose: bool) -> int:
    """Run the operator until SIGTERM or SIGINT. Returns the exit code 0. Raises BadInput where there is no cluster."""
    if options.kubeconfig is not None and not Path(options.kubeconfig).is_file():
        raise BadInput(f"--kubeconfig: {options.kubeconfig} is not a file")
    logging.basicConfig(level=logging.DEBUG if verbose else logging.INFO, format=LOG_FORMAT)
    try:
        asyncio.run(runtime.run(options))
    except ConfigException as error:
        hint = "give --kubeconfig FILE, set KUBECONFIG, or run in a pod with a service account"
        raise BadInput(f"no cluster is configured ({error}); {hint}") from None
    return 0
