# SPDX-License-Identifier: Apache-2.0
"""All rules together: each is broken by some manifest of the table, and the API server takes its form."""

import re

from dtjob.crd.answers.problems import problems, useless_fields
from dtjob.crd.rules.registry import RULES
from dtjob.crd.rules.useless import WARNINGS
from tests.refusals import BAD, WARNED


def test_each_rule_is_broken_by_some_row() -> None:
    broken = {str(problem) for row in BAD for problem in problems(row.manifest)}
    broken |= {str(problem) for row in WARNED for problem in useless_fields(row.manifest)}
    not_broken = [
        rule.message for rule in (*RULES, *WARNINGS) if not any(rule.message.split("{}")[-1] in said for said in broken)
    ]
    assert not_broken == []


def test_every_message_is_one_line_that_an_api_server_takes() -> None:
    for rule in RULES:
        assert "\n" not in rule.message
        assert len(rule.message) <= 2048


def test_paths_of_rules_are_words() -> None:
    assert all(re.fullmatch(r"[A-Za-z.*\[\]]*", rule.at) for rule in RULES)
