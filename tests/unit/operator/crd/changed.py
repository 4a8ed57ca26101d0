# SPDX-License-Identifier: Apache-2.0
"""The rules on a change of a job, asked as an API server asks them. `problems` sees one file and asks none of them."""

import json

from dtjob.crd import cel
from dtjob.crd.answers.field_errors import Problem, with_defaults, without_empty_fields
from dtjob.crd.answers.problems import problems
from dtjob.crd.definition import schema
from dtjob.crd.rule import values_at
from dtjob.crd.rules.changes import CHANGE_RULES
from tests.refusals.manifests import Manifest

_SCHEMA = schema()


def changed_fields(new: Manifest, old: Manifest) -> list[Problem]:
    """The fields that cannot change and did."""
    new, old = (
        with_defaults(without_empty_fields(json.loads(json.dumps(one, default=str)), _SCHEMA), _SCHEMA)
        for one in (new, old)
    )
    return [
        Problem(".".join(filter(None, (rule.at, rule.field))), rule.message)
        for rule in CHANGE_RULES
        if _is_broken(rule.whole, rule.at, new, old)
    ]


def problems_of_change(new: Manifest, old: Manifest) -> list[Problem]:
    """What is wrong with the manifest itself, and with this change."""
    return [*problems(new), *changed_fields(new, old)]


def _is_broken(rule: str, at: str, new: Manifest, old: Manifest) -> bool:
    """Whether a rule forbids the change. It is asked where there was a value before and there is one now."""
    before = dict(values_at(old, at))
    return any(
        path in before and not cel.holds(rule, {"self": value, "oldSelf": before[path]})
        for path, value in values_at(new, at)
    )
