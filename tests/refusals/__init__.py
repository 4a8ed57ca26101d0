# SPDX-License-Identifier: Apache-2.0
"""Manifests that are refused, each with what the refusal must say, and manifests that are taken.

`tests/cluster/test_refusal.py` sends them to a real API server. `tests/unit/operator/crd/answers/test_problems.py`
asks our own rules.
"""

from tests.refusals.bounds import BOUNDS
from tests.refusals.changes import BEFORE, CHANGES, CHANGES_TAKEN
from tests.refusals.elastic import ELASTIC
from tests.refusals.failure_rules import FAILURE_RULES
from tests.refusals.fields import KINDS
from tests.refusals.gangs import GANGS
from tests.refusals.good import GOOD
from tests.refusals.grace import GRACE
from tests.refusals.life import LIFE
from tests.refusals.manifests import Bad, Manifest, job
from tests.refusals.metadata import METADATA, UNREADABLE
from tests.refusals.other_words import OTHER_WORDS
from tests.refusals.pods import PODS
from tests.refusals.resources import ONLY_VALIDATE, RESOURCES
from tests.refusals.roles import NAMES, ROLES
from tests.refusals.stalls import STALLS
from tests.refusals.tpu import TPU
from tests.refusals.trainer import TRAINER

_ROWS: list[Bad] = [
    *NAMES,
    *ROLES,
    *KINDS,
    *PODS,
    *RESOURCES,
    *TRAINER,
    *TPU,
    *GRACE,
    *LIFE,
    *FAILURE_RULES,
    *OTHER_WORDS,
    *BOUNDS,
    *STALLS,
    *ELASTIC,
    *GANGS,
    *METADATA,
    *UNREADABLE,
]
BAD = [row for row in _ROWS if not row.warned]
WARNED = [row for row in _ROWS if row.warned]
"""Manifests that are taken, with a warning of `dtjob validate`."""

__all__ = ["BAD", "BEFORE", "CHANGES", "CHANGES_TAKEN", "GOOD", "ONLY_VALIDATE", "WARNED", "Bad", "Manifest", "job"]
