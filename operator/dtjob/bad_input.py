# SPDX-License-Identifier: Apache-2.0
"""The user's mistakes. In a file of its own, as the command line imports it before anything else."""

from pathlib import Path


class BadInput(Exception):
    """The user's input cannot be used. `lines` say what is wrong and what to write instead."""

    def __init__(self, *lines: str) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines


def check_kubeconfig(given: str | None) -> None:
    """Raise BadInput where a kubeconfig was named that is no file; a pipe is one, as in `--kubeconfig <(command)`."""
    if given is not None and (not Path(given).exists() or Path(given).is_dir()):
        raise BadInput(f"--kubeconfig: {given} is not a file")
