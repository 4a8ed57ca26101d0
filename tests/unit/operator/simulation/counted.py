# SPDX-License-Identifier: Apache-2.0
"""The restarts that the operator's metric counts, which have to be those of the statuses."""

from typing import Any

from dtjob.controller.observer import Observer
from dtjob.kube.endpoints.metrics import new_restarts


class CountedRestarts(Observer):
    """Counts as `dtjob_restarts_total` does, over all operators that there were."""

    def __init__(self) -> None:
        self.total = 0

    def status_written(self, old: dict[str, Any], new: dict[str, Any]) -> None:
        self.total += sum(new_restarts(old, new).values())
