# SPDX-License-Identifier: Apache-2.0
"""Observer: what happens in the operator, for `kube/endpoints/metrics.py`, which counts it."""

from typing import Any, Literal

Result = Literal["success", "stale", "failed_call", "bug"]
"""How a reconcile ended: `stale` met a newer version of the job, `failed_call` a call that may do better later."""


class Observer:
    """Told about each thing once it has happened. Must not raise."""

    def reconciled(self, result: Result, seconds: float) -> None:
        """One job was planned for and its plan carried out, in so many seconds."""

    def status_written(self, old: dict[str, Any], new: dict[str, Any]) -> None:
        """A job's status was written."""

    def called(self, method: str, resource: str, code: str) -> None:
        """A call to the API server was answered with this HTTP status, or with `<error>` not at all."""


NOBODY = Observer()
