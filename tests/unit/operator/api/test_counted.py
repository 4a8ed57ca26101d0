# SPDX-License-Identifier: Apache-2.0
"""dtjob.api.counted: one thing has no plural."""

import re
from pathlib import Path

from dtjob.api.counted import counted

OPERATOR = Path(__file__).parents[4] / "operator" / "dtjob"
PLURAL = re.compile(r"(?<!of )\{[^{}]+\} (?:tasks|pods|workers)\b")
"""A number with a plural in a message. `{2} of {3} pods` is right for every number."""
GUARDED = {"phase.py", "explanation.py", "call_summary.py"}
"""Files that name one thing apart before they write this."""
MORE_THAN_ONE = {"replicaSpecs.{name}", "more than the {members} pods", "workers are asked for in queue"}
"""Messages about more things than there were, or than a field allows to be one."""


def test_a_single_thing_has_no_plural() -> None:
    assert [counted(number, "worker") for number in (0, 1, 2)] == ["0 workers", "1 worker", "2 workers"]


def test_no_message_has_a_number_before_a_plural() -> None:
    found = [
        f"{file.relative_to(OPERATOR)}: {line.strip()}"
        for file in OPERATOR.rglob("*.py")
        if file.name not in GUARDED
        for line in file.read_text().splitlines()
        if PLURAL.search(line) and not any(words in line for words in MORE_THAN_ONE)
    ]
    assert found == []
