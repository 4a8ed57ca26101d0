"""`--kubeconfig`: the file that a user named, before the client's library words its own answer."""

from __future__ import annotations

from pathlib import Path

from dtjob.cli.bad_input import BadInput


def check_kubeconfig(given: str | None) -> None:
    """Raise BadInput where a kubeconfig was named that is no file; a pipe is one, as in `--kubeconfig <(command)`."""
    if given is not None and (not Path(given).exists() or Path(given).is_dir()):
        raise BadInput(f"--kubeconfig: {given} is not a file")
