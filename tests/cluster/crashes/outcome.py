# SPDX-License-Identifier: Apache-2.0
"""What a life of a job came to, to be compared with the same life in which nothing fails."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from tests.cluster.crashes.faults import KILLS, What
from tools.cluster.rest import Object

OF_CALLS = {"SuccessfulCreate", "SuccessfulDelete", "FailedCreate", "Repaired", "Blocked"}
"""Events about calls and not about decisions: a call that fails changes what they say."""


@dataclass
class Outcome:
    """`status`: what the job says of itself at the end. `made`: every object that was made, by resource and name, and
    how often; of all but pods only those whose making was answered. `events`: how often each reason was told of."""

    status: Object = field(default_factory=dict)
    made: Counter[tuple[str, str]] = field(default_factory=Counter)
    events: Counter[str] = field(default_factory=Counter)


def of_status(found: Object | None) -> Object:
    """What of this job's status does not depend on when something happened."""
    status = (found or {}).get("status") or {}
    internal = status.get("internal") or {}
    incident = internal.get("incident") or {}
    counts = ("number", "cause", "charged", "counted", "uncharged", "inARow", "attempts")
    return {
        "phase": status.get("phase"),
        "reason": status.get("reason"),
        "restarts": status.get("restarts"),
        "conditions": {
            one["type"]: [one["status"], one.get("reason")]
            for one in status.get("conditions") or ()
            if (one["type"], one["status"]) != ("Blocked", "False")  # something could not be made for a moment
        },
        "incidents": [[one["number"], one["task"], one["reason"]] for one in status.get("incidents") or ()],
        "attempts": internal.get("attempts"),
        "finished": internal.get("finished"),
        "incident": {name: incident.get(name) for name in counts},
        "workers": {name: count for name, count in (status.get("workers") or {}).items() if isinstance(count, int)},
    }


def _same(name: str, one: Any, other: Any, what: What | None) -> bool:
    if name == "conditions" and what is What.STALE_OTHERS:
        # For a moment, pods that run are not seen to run. The condition then stays, as False, with another reason.
        one, other = ({**conditions, "Restarting": None} for conditions in (one, other))
    return bool(one == other)


def differences(found: Outcome, wanted: Outcome, what: What | None) -> list[str]:
    """In what this life differs from the undisturbed one. An operator that is killed after it has written a status may
    not have told the events about it: none is told twice."""
    differ = [
        f"status {name}: {found.status.get(name)} and not {one}"
        for name, one in wanted.status.items()
        if not _same(name, found.status.get(name), one, what)
    ]
    if more := found.made - wanted.made:
        differ.append(f"made {sorted(more.elements())} more")
    if less := sorted(one for one in (wanted.made - found.made).elements() if one[0] == "pods"):
        differ.append(f"did not make {less}")
    if told := found.events - wanted.events:
        differ.append(f"told {dict(told)} too often")
    if what not in KILLS and (untold := wanted.events - found.events):
        differ.append(f"did not tell {dict(untold)}")
    return differ
