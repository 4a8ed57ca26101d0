# SPDX-License-Identifier: Apache-2.0
"""kubectl with one kubeconfig, whatever the user's own settings are."""

import os
import subprocess
from pathlib import Path


def run(
    program: Path, kubeconfig: Path, *arguments: str, stdin: str | None = None, check: bool = True
) -> subprocess.CompletedProcess[str]:
    """Run kubectl; what it caches goes beside the kubeconfig.

    With `check`, a failure raises AssertionError with what kubectl said.
    """
    done = subprocess.run(
        [str(program), *arguments],
        env={**os.environ, "KUBECONFIG": str(kubeconfig), "HOME": str(kubeconfig.parent)},
        input=stdin,
        capture_output=True,
        text=True,
    )
    if check and done.returncode:
        raise AssertionError(f"kubectl {' '.join(arguments)}: {done.stderr.strip() or done.stdout.strip()}")
    return done
