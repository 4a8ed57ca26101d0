# SPDX-License-Identifier: Apache-2.0
"""The reference pages have every condition, and every reason of a phase, a condition and an Event in the code."""

from collections import defaultdict
from collections.abc import Iterator

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


_seen: set[str] = set()


def values(call: Call, position: int | str) -> set[str]:
    """What the argument may be; nothing if it is passed on from a call that is looked at too."""
    try:
        return call.values(position)
    except NotNamedHere as unknown:
        _seen.add(str(unknown))
        return set()


def phases_in_code() -> Iterator[tuple[str, str]]:
    """Each phase and each of its reasons."""
    for call in calls(*REASON_OF_A_PHASE):
        at = REASON_OF_A_PHASE[call.callee]
        if not call.has(at):
            continue  # the default of GiveUp, or of another class
        phases = {PHASE_OF[call.callee]} if call.callee in PHASE_OF else values(call, PHASE_AT[call.callee])
        yield from ((phase, reason) for phase in phases for reason in values(call, at))
    yield Phase.FAILED, GiveUp.reason
    yield from ((Phase.RESTARTING, reason) for reason in (*Cause, Phase.RESTARTING))


def conditions_in_code() -> dict[str, set[str]]:
    """The reasons of each condition, without those of phases."""
    found: dict[str, set[str]] = defaultdict(set)
    for call in calls(*OF_CONDITIONS):
        for type_ in values(call, 1):
            found[type_] |= values(call, OF_CONDITIONS[call.callee])
    for call in calls(*OF_ONE_CONDITION):
        type_, at = OF_ONE_CONDITION[call.callee]
        found[type_] |= values(call, at)
    for phase in Phase:
        for one in set_phase(Status(), phase, "Reason", "", NOW).conditions:
            found[one.type] |= {one.reason} - {"Reason"}
    return found


def test_the_origin_of_every_reason_that_is_passed_on_is_known() -> None:
    """A reason in a new form fails here: then give it to one of the functions above, or say where it comes from."""
    _seen.clear()
    assert set(phases_in_code())
    assert conditions_in_code()
    assert _seen == PASSED_ON


def test_every_phase_has_its_meaning() -> None:
    assert list(PHASES) == list(Phase)


def test_every_reason_of_a_phase_has_its_meaning() -> None:
    anywhere = set(REASONS_OF_PHASES[None])
    found = set(phases_in_code())
    named = {(phase, reason) for phase, reasons in REASONS_OF_PHASES.items() if phase for reason in reasons}
    assert {(phase, reason) for phase, reason in found if reason not in anywhere} == named
    said = {reason for call in calls("say_instead") for reason in values(call, 1)}
    assert said == anywhere


def test_every_condition_has_its_meaning() -> None:
    assert set(CONDITIONS) == set(conditions_in_code()) | set(CONDITION_OF.values())


def test_every_reason_of_a_condition_has_its_meaning() -> None:
    found = conditions_in_code()
    for name in ("QuotaReserved", "Admitted"):
        found[name].add("Pending")  # until Kueue gives a reason of its own
    assert {name: set(one.reasons) for name, one in CONDITIONS.items()} == {name: found[name] for name in CONDITIONS}


def events_in_code() -> dict[str, set[str]]:
    """Each reason of an Event, and its types."""
    found: dict[str, set[str]] = defaultdict(set)
    for call in calls("Event", "draft.add_event"):
        types = values(call, 0)
        for reason in values(call, 1):
            found[reason] |= types
    for reason in (DEADLINE_EXCEEDED, START_DEADLINE_EXCEEDED):
        found[reason].add("Warning")
    return found


def test_every_reason_of_an_event_has_its_types_and_its_meaning() -> None:
    _seen.clear()
    found = events_in_code()
    assert _seen == EVENTS_PASSED_ON
    assert {reason: set(one.types) for reason, one in EVENTS.items()} == found
