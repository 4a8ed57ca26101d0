"""What is said of elastic workers."""

from __future__ import annotations

import pytest

from dtjob.cli.explain import as_text
from dtjob.cli.explain_elastic import elastic
from tests.unit.operator.builders import job

SCALE = "(kubectl scale dtjob/digits --replicas=N): each change saves and goes on at that checkpoint"


@pytest.mark.parametrize(
    ("worker", "policy", "lines"),
    [
        ({"count": 4}, {}, []),
        (
            {"count": 4, "max": 8},
            {},
            [
                f"4 workers, elastic from 1 to 8 {SCALE}",
                "never trains with fewer than that: without min it waits for room",
            ],
        ),
        (
            {"count": 4, "min": 2},
            {"elasticity": {"scheduleTimeoutSeconds": 60}},
            [
                f"4 workers, elastic from 2 on {SCALE}",
                "without room for all of them for 1m trains with what there is, at least 2; looks for room for the "
                "others 10m later, with placeholder pods",
            ],
        ),
    ],
)
def test_it_says_how_many_there_may_be(worker: dict[str, int], policy: dict[str, object], lines: list[str]) -> None:
    made = job(replicaSpecs={"chief": {}, "worker": worker}, **policy)
    assert elastic(made) == [f"  {line}" for line in lines]
    assert all(line in "".join(as_text(made)) for line in lines)
