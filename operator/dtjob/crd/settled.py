# SPDX-License-Identifier: Apache-2.0
"""Which rules can be spared once a job exists: those that read nothing but what cannot change any more.

An API server evaluates every rule at each write of a job's status, as it cannot tell that the spec is as it was where a
field of it is open. Each rule takes it 10 to 50 µs, since each look at a field copies the schemas of all fields beside
it; so what was settled when the job was created is asked then and never again.
"""

from __future__ import annotations

import re

from dtjob.api.spec.replica_specs import Role

CHANGEABLE = (
    *("failurePolicy", "elasticPolicy", "suspend", "cleanPodPolicy"),
    *("activeDeadlineSeconds", "startDeadlineSeconds", "ttlSecondsAfterFinished", "ttlSecondsAfterFailed"),
)
"""Fields of the spec that may change while the job exists; all others are in the pods already, or say whose it is. Of
`replicaSpecs` a part may, at times."""

_READ = re.compile(r"(has\()?\bself\b((?:\.\w+)*)")
"""What CEL reads of the value that a rule is about, and whether only for its being there."""
_ROLES = frozenset(role.value for role in Role)


def is_settled(at: str, cel: str) -> bool:
    """Whether nothing that this CEL reads of the value at the path `at` can change once the job exists."""
    base = tuple(at.split(".")) if at else ()
    reads = (((*base, *path.split(".")[1:]), bool(has)) for has, path in _READ.findall(cel))
    return all(_cannot_change(path, only_there) for path, only_there in reads)


def _cannot_change(path: tuple[str, ...], only_there: bool) -> bool:
    """Whether what is at this path cannot change; `only_there`: whether it is read only for its being there."""
    match path:
        case ("metadata", "name", *_):
            return True
        case ("spec", "replicaSpecs", role):
            return only_there and role in _ROLES
        case ("spec", field, *_):
            return field not in (*CHANGEABLE, "replicaSpecs")
        case _:
            return False
