"""Manifests that are refused, each with what the refusal must say, and manifests that are taken.

`tests/cluster/test_refusal.py` sends them to a real API server, `tests/unit/operator/crd/test_problems.py` to our own
rules.
"""

from tests.refusals import failure_rules, fields, gangs, grace, life, pods, roles, tpu, trainer
from tests.refusals.changes import BEFORE, CHANGES, CHANGES_TAKEN
from tests.refusals.good import GOOD
from tests.refusals.manifests import Bad, Manifest, job

BAD = [*roles.NAMES, *roles.ROLES, *fields.KINDS, *pods.PODS, *trainer.TRAINER, *tpu.TPU, *grace.GRACE, *life.LIFE]
BAD += [*failure_rules.FAILURE_RULES, *gangs.GANGS]

__all__ = ["BAD", "BEFORE", "CHANGES", "CHANGES_TAKEN", "GOOD", "Bad", "Manifest", "job"]
