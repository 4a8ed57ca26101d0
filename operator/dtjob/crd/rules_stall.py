"""Rules about `failurePolicy.stallTimeoutSeconds`."""

from __future__ import annotations

from dtjob.crd.rule import Reason, Rule, Value
from dtjob.crd.rules_failure import FRAME

STALLED = "Stalled"
"""The reason of a container that ended over a stall."""

_FIELD = "failurePolicy.stallTimeoutSeconds"
_HAS = f"has(self.{_FIELD})"


def _seconds(spec: Value) -> int | None:
    found: int | None = (spec.get("failurePolicy") or {}).get("stallTimeoutSeconds")
    return found


def _matches_stalls(spec: Value) -> bool:
    rules = (spec.get("failurePolicy") or {}).get("rules") or ()
    return any(STALLED in (rule.get("onReasons") or ()) for rule in rules)


def _ends_before(spec: Value) -> bool:
    deadline, seconds = spec.get("activeDeadlineSeconds"), _seconds(spec)
    return deadline is not None and seconds is not None and deadline <= seconds


STALL_RULES = (
    Rule(
        "spec",
        f"has(self.program) || !{_HAS}",
        lambda spec: spec.get("program") is not None or _seconds(spec) is None,
        "only dtjob's trainer reports steps, and it runs only if program is set: set program, or remove "
        "stallTimeoutSeconds",
        _FIELD,
        Reason.FORBIDDEN,
    ),
    Rule(
        "spec",
        f"!{_HAS} || !has(self.activeDeadlineSeconds) || self.{_FIELD} < self.activeDeadlineSeconds",
        lambda spec: not _ends_before(spec),
        "must be less than activeDeadlineSeconds, which fails the job first: reduce it, or remove it",
        _FIELD,
    ),
    Rule(
        "spec",
        f"{_HAS} || rules.all(r, !has(r.onReasons) || !('{STALLED}' in r.onReasons))",
        lambda spec: _seconds(spec) is not None or not _matches_stalls(spec),
        f"no task ends with reason {STALLED} if stallTimeoutSeconds is not set: set it, such as 600, or remove "
        f"{STALLED} from onReasons",
        "failurePolicy.rules",
        frame=FRAME,
    ),
)
