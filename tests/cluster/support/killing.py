# SPDX-License-Identifier: Apache-2.0
"""An operator that is killed at each of its calls that change something, once before it and once after."""

import threading
from collections.abc import Callable

from tests.cluster.support.api_proxy import ApiProxy, Call, Lost
from tests.cluster.support.operator_process import OperatorProcess

CHANGES = ("POST", "PUT", "PATCH", "DELETE")
Step = tuple[str, ...]
"""What a call does: its method, resource and name, the uid of what it deletes, and a status' phase and reason."""


def step_of(call: Call) -> Step:
    """The step that this call is."""
    body = call.body or {}
    status, uid = body.get("status") or {}, (body.get("preconditions") or {}).get("uid", "")
    return (call.method, call.resource, call.name, uid, *(str(status.get(name, "")) for name in ("phase", "reason")))


class KilledAtEachStep:
    """SIGKILL for the operator when it is about to do a step, which is not done then; and again when the step is done,
    of which it does not hear; the third time it is let through. It is started again each time.

    `wanted` says of which calls; `killed` has the steps in their order, each with "before" or "after".
    """

    def __init__(self, proxy: ApiProxy, operator: OperatorProcess, wanted: Callable[[Call], bool]) -> None:
        self.killed: list[tuple[Step, str]] = []
        self._operator, self._wanted = operator, wanted
        self._turn = threading.Lock()
        proxy.rule = self._rule

    def steps(self, when: str) -> set[tuple[str, str]]:
        """Method and resource of the steps at which it was killed then."""
        return {(step[0], step[1]) for step, moment in self.killed if moment == when}

    def _rule(self, call: Call) -> Callable[[], None] | Lost | None:
        if call.method not in CHANGES or not self._wanted(call):
            return None
        step = step_of(call)
        if (step, "before") not in self.killed:
            self.killed.append((step, "before"))
            return self._again
        if (step, "after") not in self.killed:
            self.killed.append((step, "after"))
            return Lost(self._again)
        return None

    def _again(self) -> None:
        with self._turn:
            self._operator.restart()
