# SPDX-License-Identifier: Apache-2.0
"""Rules about gangs, and about labels of nodes that bring pods near each other."""

from dtjob.api.label_forms import DOMAIN, NAME
from dtjob.crd.rule import Rule, quoted


def _in_form(at: str, field: str, form: str, message: str) -> Rule:
    return Rule(
        at,
        f"!has(self.{field}) || self.{field}.matches({quoted(f'^{form}$')})",
        message,
        field,
    )


_IS_NO_LABEL = "is not the key of a node label: write one, such as topology.kubernetes.io/zone"
GANG_RULES = (
    _in_form(
        "spec.scheduling.gang.volcano",
        "queue",
        DOMAIN,
        "is not the name of a Queue: use lower-case letters, digits, dashes and dots, such as team-a",
    ),
    Rule(
        "spec.scheduling.topology",
        "has(self.required) != has(self.preferred)",
        "set exactly one of required (pods wait for nodes near each other) and preferred (pods go elsewhere if there "
        "are none), such as {required: topology.kubernetes.io/zone}",
    ),
    _in_form("spec.scheduling.topology", "required", NAME, _IS_NO_LABEL),
    _in_form("spec.scheduling.topology", "preferred", NAME, _IS_NO_LABEL),
)
