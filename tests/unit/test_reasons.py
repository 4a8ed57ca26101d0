# SPDX-License-Identifier: Apache-2.0
"""The reference pages have no condition and no reason that is not in the code.

They lack none either: plans and simulated lives fail at one that they lack (`operator/documented.py`).
"""

import ast
from pathlib import Path

from dtjob.api.phase import Phase
from dtjob.api.status.status import Status
from dtjob.plan.failure.decisions import GiveUp
from dtjob.plan.lifetime.ending import DEADLINE_EXCEEDED, START_DEADLINE_EXCEEDED
from dtjob.plan.record.failure import Cause
from dtjob.plan.record.status import CONDITION_OF, set_phase
from tests.unit.operator.builders import NOW
from tests.unit.reasons import Call, NotNamedHere, calls
from tools.reference.conditions import CONDITIONS, PHASES, REASONS_OF_PHASES
from tools.reference.events import EVENTS

REASON_OF_A_PHASE = {"PhaseStatus": 1, "set_phase": 2, "Pause": 0, "replace": "reason", "GiveUp": 2}
"""Who is given the reason of a phase, and as which argument."""
PHASE_AT = {"PhaseStatus": 0, "set_phase": 1}
PHASE_OF = {"Pause": Phase.SUSPENDED, "replace": Phase.SUSPENDED, "GiveUp": Phase.FAILED}
PASSED_ON = {
    "phase.py: _cause_word(status)",  # a cause, or the name of the phase
    "ending.py: end.reason",  # GiveUp
    "phase.py: *current_phase(situation)",  # PhaseStatus
    "suspension.py: pause.reason",  # Pause
    "status.py: *words",  # set_phase, asked below
    "checkpoints.py: reason",  # Keeping
    "queueing.py: *there",  # Kueue's own reasons
    "reachability.py: reason",  # _set_reachable and nothing_to_reach
    "reachability.py: silence.reason",  # the name of an error
}
"""Arguments whose values come from elsewhere, and from where."""
OF_CONDITIONS = {"set_condition": 3}
OF_ONE_CONDITION = {
    "_set_reachable": ("StatusReachable", 2),
    "nothing_to_reach": ("StatusReachable", 1),
    "Keeping": ("CheckpointsKept", 1),
}
"""Who is given the reason of one condition, and as which argument."""
EVENTS_PASSED_ON = {
    "draft.py: type_", "draft.py: reason",  # draft.add_event
    "ending.py: end.reason",  # GiveUp
}  # fmt: skip


def test_every_phase_and_its_condition_have_their_meaning() -> None:
    assert list(PHASES) == list(Phase)
    assert {*ALWAYS_THERE, *CONDITION_OF.values()} <= set(CONDITIONS)


def test_every_condition_and_every_reason_of_a_page_is_in_the_code() -> None:
    trees = [ast.parse(file.read_text()) for file in CODE.rglob("*.py")]
    texts = {node.value for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    reasons = {
        reason
        for some in (*REASONS_OF_PHASES.values(), *(one.reasons for one in CONDITIONS.values()))
        for reason in some
    }
    assert {*CONDITIONS, *reasons, *EVENTS} - texts == set()
