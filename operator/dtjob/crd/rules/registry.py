# SPDX-License-Identifier: Apache-2.0
"""All rules that a manifest must fulfil, beside what its fields say by themselves.

Each rule stands once in a file beside this one, in CEL. `definition.py` puts it into the CRD, and
`answers/problems.py` asks it of a manifest. A rule stops what would train wrongly, lose data or never start. What is
merely useless is a warning (`useless.py`). Rules on a change (`changes.py`) are apart: they read `oldSelf`, which a
manifest does not have.
"""

from dtjob.crd.rule import Rule
from dtjob.crd.rules.life import GRACE_RULES, LIFE_RULES, SUCCESS_RULES
from dtjob.crd.rules.pod import POD_RULES, PORT_RULES, TWICE_RULES
from dtjob.crd.rules.policies import ELASTIC_RULES, FAILURE_RULES, GANG_RULES
from dtjob.crd.rules.resources import RESOURCE_RULES, TPU_RULES
from dtjob.crd.rules.roles import NAME_RULES, ROLE_RULES
from dtjob.crd.rules.storage import CLAIM_RULES, MOUNT_RULES, SOURCE_RULES, STORAGE_RULES, VOLUME_RULES
from dtjob.crd.rules.trainer import TRAINER_RULES

RULES: tuple[Rule, ...] = (
    *(*NAME_RULES, *ROLE_RULES, *POD_RULES, *MOUNT_RULES, *RESOURCE_RULES, *TWICE_RULES, *PORT_RULES),
    *(*STORAGE_RULES, *CLAIM_RULES, *VOLUME_RULES, *SOURCE_RULES),
    *(*TRAINER_RULES, *TPU_RULES, *GRACE_RULES, *LIFE_RULES, *SUCCESS_RULES),
    *FAILURE_RULES,
    *ELASTIC_RULES,
    *GANG_RULES,
)
