# SPDX-License-Identifier: Apache-2.0
"""What a task has of dtjob's own environment. Pure; imports nothing, as it is asked before anything else."""

from collections.abc import Mapping

_NOT = ("DTJOB_", "TF_CONFIG")


def inherited(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables of a task that its manifest does not set, where `environ` is dtjob's."""
    own = {name: value for name, value in environ.items() if not name.startswith(_NOT)}
    return {**own, "PYTHONUNBUFFERED": "1", "PYTHONHASHSEED": "0"}


def read_by_imports(environment: Mapping[str, str]) -> dict[str, str]:
    """What an import may read of a task's environment: all but what tells tasks apart.

    These are the contract's variables, and the GPUs of each: CUDA reads those when the first of them is used.
    """
    apart = ("DTJOB_", "CUDA_VISIBLE_DEVICES")
    return {name: value for name, value in environment.items() if not name.startswith(apart)}
