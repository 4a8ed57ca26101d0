# SPDX-License-Identifier: Apache-2.0
"""The phase of a job, read back from its conditions."""

from collections.abc import Iterable

from dtjob.api.phase import ENDED, Phase
from dtjob.api.status.condition import Condition
from dtjob.plan.record.status import BLOCKED, CONDITION_OF, RUNNING, SPEC_ACCEPTED, PhaseStatus


def phase_said_by(conditions: Iterable[Condition]) -> PhaseStatus:
    """The phase with its reason and message, as the conditions say it."""
    there = {one.type: one for one in conditions}
    phase = next((phase for phase, type_ in CONDITION_OF.items() if type_ in there and there[type_].holds), None)
    source = there.get(CONDITION_OF[phase] if phase else RUNNING)
    words = (source.reason, source.message) if source else ("", "")
    if (blocked := there.get(BLOCKED)) and blocked.holds:
        words = (blocked.reason, blocked.message)
    if (accepted := there.get(SPEC_ACCEPTED)) and accepted.status == "False" and phase not in ENDED:
        words = (accepted.reason, accepted.message)
    return PhaseStatus(phase or Phase.PENDING, *words)
