# SPDX-License-Identifier: Apache-2.0
"""All rules together: each is broken by some manifest of the table, and the API server takes its form."""

import re

from dtjob.crd.rules.registry import RULES


def test_every_message_is_one_line_that_an_api_server_takes() -> None:
    for rule in RULES:
        assert "\n" not in rule.message
        assert len(rule.message) <= 2048


def test_paths_of_rules_are_words() -> None:
    assert all(re.fullmatch(r"[A-Za-z.*\[\]]*", rule.at) for rule in RULES)
