# SPDX-License-Identifier: Apache-2.0
"""The reference pages have no condition and no reason that is not in the code.

They lack none either: plans and simulated lives fail at one that they lack (`operator/documented.py`).
"""

import ast
from pathlib import Path

from dtjob.api.phase import Phase
from dtjob.plan.record.status import ALWAYS_THERE, CONDITION_OF
from tools.reference.conditions import CONDITIONS, PHASES, REASONS_OF_PHASES
from tools.reference.events import EVENTS

CODE = Path(__file__).parents[2] / "operator" / "dtjob"


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
