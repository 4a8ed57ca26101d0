# SPDX-License-Identifier: Apache-2.0
"""`python3 -m dtjob_trainer.launcher SOCKET PARENT`: imports TensorFlow once for all tasks that `dtjob run` starts.

The inherited descriptor SOCKET brings requests (contract/forked.py); for each a supervisor or a training process is
forked and becomes a child of PARENT, the process that asks. Ends with that process, or when it closes the socket.
"""

import os
import signal
import socket
import sys
from collections.abc import Sequence
from typing import NoReturn

from dtjob_trainer import imports
from dtjob_trainer.contract import forked
from dtjob_trainer.contract.forked import Request
from dtjob_trainer.contract.parent import die_with_parent
from dtjob_trainer.contract.template import Template

NAME = "dtjob-launcher"


def main(arguments: Sequence[str]) -> NoReturn:
    """Serve requests until nobody can ask any more."""
    descriptor, parent = (int(argument) for argument in arguments[:2])
    die_with_parent(signal.SIGKILL, parent)
    forked.set_name(NAME)
    forked.take_room()
    imports.of_a_template()
    forked.serve(socket.socket(fileno=descriptor), parent, NAME, begin)


def begin(request: Request) -> NoReturn:
    """Be what the request names: a supervisor, with a template of its own, or a training process."""
    if request.module == "dtjob_trainer":
        _supervise(request)
    _train(request)


def _supervise(request: Request) -> NoReturn:
    from dtjob_trainer import __main__ as supervisor

    forked.set_name(forked.task_name(os.environ))
    code = supervisor.main(list(request.arguments), Template.fork(_train))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _train(request: Request) -> NoReturn:
    from dtjob_trainer import run

    forked.set_name(f"{forked.task_name(os.environ)}:run")
    run.main(request.arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
