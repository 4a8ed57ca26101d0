"""Rules about a job's life as a whole: who manages it, its deadlines, and how long it stays after its end."""

from __future__ import annotations

import re

from dtjob.api.job import CONTROLLER
from dtjob.crd.rule import Rule

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_PREFIXED_PATH = rf"^{_LABEL}(\.{_LABEL})*/[A-Za-z0-9/._~%!$&'()*+,;=:-]+$"
"""A DNS subdomain, a slash and characters of a path (RFC 3986), as batch/v1 has it for a Job's managedBy."""


def _in_cel(pattern: str) -> str:
    escaped = pattern.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


LIFE_RULES = (
    Rule(
        "spec",
        f"!has(self.managedBy) || self.managedBy.matches({_in_cel(_PREFIXED_PATH)})",
        lambda spec: (
            spec.get("managedBy") is None or re.search(_PREFIXED_PATH[:-1] + r"\Z", spec["managedBy"]) is not None
        ),
        f"must be a domain-prefixed path, such as kueue.x-k8s.io/multikueue: remove it, or write {CONTROLLER} if dtjob "
        "runs the job",
        "managedBy",
    ),
    Rule(
        "spec",
        "!has(self.startDeadlineSeconds) || !has(self.activeDeadlineSeconds) || "
        "self.startDeadlineSeconds < self.activeDeadlineSeconds",
        lambda spec: (
            None in (spec.get("startDeadlineSeconds"), spec.get("activeDeadlineSeconds"))
            or spec["startDeadlineSeconds"] < spec["activeDeadlineSeconds"]
        ),
        "must be less than activeDeadlineSeconds, which fails the job first: reduce it, or remove it",
        "startDeadlineSeconds",
    ),
)
