"""What is said of elastic workers."""

from __future__ import annotations

import pytest

from dtjob.cli.explain import as_text
from dtjob.cli.explain_elastic import elastic
from tests.unit.operator.builders import job

SCALE = "(kubectl scale dtjob/digits --replicas=N): each change saves and goes on at that checkpoint"


@pytest.mark.parametrize(
    ("policy", "lines"),
    [
        (None, []),
        (
            {"maxReplicas": 8},
            [
                f"4 workers, elastic from 1 to 8 {SCALE}",
                "never trains with fewer than that: without minReplicas it waits for room",
            ],
        ),
        (
            {"minReplicas": 2, "scheduleTimeoutSeconds": 60},
            [
                f"4 workers, elastic from 2 on {SCALE}",
                "without room for all of them for 1m trains with what there is, at least 2; looks for room for the "
                "others 10m later, with placeholder pods",
            ],
        ),
    ],
)
def test_it_says_how_many_there_may_be(policy: dict[str, int] | None, lines: list[str]) -> None:
    made = job(workers=4, elasticPolicy=policy)
    assert elastic(made) == [f"  {line}" for line in lines]
    assert all(line in "".join(as_text(made)) for line in lines)
