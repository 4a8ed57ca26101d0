# SPDX-License-Identifier: Apache-2.0
"""The built-in failure rules. `dtjob explain` shows them, so that this file imports nothing that takes time."""

from dataclasses import dataclass

from dtjob.api.spec.failure_rules import RuleAction


@dataclass(frozen=True)
class BuiltIn:
    """A rule that decides if none of the user's rules matches."""

    action: RuleAction
    charged: bool
    """Whether the rule is about causes that are charged, or about all others (`Cause.charged`)."""
    what: str
    """Which failures those are, in words."""


BUILT_IN = (
    BuiltIn(
        RuleAction.RESTART_AND_IGNORE_MAX_RESTARTS,
        False,
        "evictions, preemptions, drains, lost nodes, deleted pods, and pods that their node refused",
    ),
    BuiltIn(
        RuleAction.RESTART,
        True,
        "any other exit code or signal, stalls, out of memory, and evictions for more storage than the pod's own "
        "limits allow",
    ),
)
"""The rules for the tasks that train. The evaluator is restarted whatever it fails of, and nothing is counted for it.
"""
