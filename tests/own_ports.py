# SPDX-License-Identifier: Apache-2.0
"""The ports of one process of a test run. As a program: `dtjob` with the ports of the tests that start it."""

import os
import sys
from collections.abc import Mapping

from dtjob.local.processes import addresses

DTJOB = (sys.executable, __file__)
"""The command `dtjob`."""


def choose_from_own_ports(environ: Mapping[str, str]) -> None:
    """Choose no port that another process of the run may choose before the server of this one listens."""
    if worker := environ.get("PYTEST_XDIST_WORKER"):
        count = int(environ["PYTEST_XDIST_WORKER_COUNT"])
        mine = addresses.candidates()[int(worker.removeprefix("gw")) :: count]
        addresses.candidates = lambda: mine


if __name__ == "__main__":
    from dtjob.cli.main import main

    choose_from_own_ports(os.environ)
    main()
