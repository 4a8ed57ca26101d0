"""All rules that a manifest must fulfil, beside what its fields say by themselves.

The rules stand in the files `rules_*.py`, each once with its CEL and its Python; `definition.py` puts the CEL into the
CRD, `problems.py` asks the Python.
"""

from __future__ import annotations

from dtjob.crd.rule import Rule, Unchanging
from dtjob.crd.rules_elastic import ELASTIC_RULES
from dtjob.crd.rules_failure import FAILURE_RULES
from dtjob.crd.rules_gang import GANG_RULES
from dtjob.crd.rules_grace import GRACE_RULES
from dtjob.crd.rules_life import LIFE_RULES
from dtjob.crd.rules_mounts import MOUNT_RULES
from dtjob.crd.rules_pod import POD_RULES
from dtjob.crd.rules_ports import PORT_RULES
from dtjob.crd.rules_resources import RESOURCE_RULES
from dtjob.crd.rules_roles import NAME_RULES, ROLE_RULES
from dtjob.crd.rules_stall import STALL_RULES
from dtjob.crd.rules_storage import STORAGE_RULES, VOLUME_RULES
from dtjob.crd.rules_success import SUCCESS_RULES
from dtjob.crd.rules_tpu import TPU_RULES
from dtjob.crd.rules_trainer import TRAINER_RULES
from dtjob.crd.rules_twice import TWICE_RULES
from dtjob.crd.schema import is_always_there, spec_schema
from dtjob.crd.settled import CHANGEABLE
from dtjob.crd.suspended_roles import UnchangingRoles

RULES: tuple[Rule, ...] = (
    *(*NAME_RULES, *ROLE_RULES, *POD_RULES, *MOUNT_RULES, *RESOURCE_RULES, *TWICE_RULES, *PORT_RULES),
    *(*STORAGE_RULES, *VOLUME_RULES),
    *(*TRAINER_RULES, *TPU_RULES, *GRACE_RULES, *LIFE_RULES, *SUCCESS_RULES),
    *FAILURE_RULES,
    *STALL_RULES,
    *ELASTIC_RULES,
    *GANG_RULES,
)

IN_PART = {"replicaSpecs": UnchangingRoles}
"""Fields of which a part may change at times."""


def _unchanging(name: str) -> Unchanging:
    return IN_PART.get(name, Unchanging)(name, is_always_there(name))


UNCHANGING: tuple[Unchanging, ...] = tuple(
    _unchanging(name) for name in spec_schema()["properties"] if name not in CHANGEABLE
)
"""One rule about a job's change for each field that cannot."""
