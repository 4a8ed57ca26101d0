# SPDX-License-Identifier: Apache-2.0
"""Elastic workers: their bounds over all numbers, and which changes of an elastic job are taken."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtjob.crd.answers.problems import problems
from tests.refusals.elastic import ELASTIC_BEFORE, ELASTIC_CHANGES, ELASTIC_CHANGES_TAKEN, elastic
from tests.refusals.manifests import Bad
from tests.unit.operator.crd.changed import problems_of_change

NUMBER = st.integers(1, 20)


@given(count=NUMBER, least=st.none() | NUMBER, most=st.none() | NUMBER)
def test_replicas_lie_between_min_and_max_replicas(count: int, least: int | None, most: int | None) -> None:
    found = problems(elastic(replicas=count, least=least, most=most))
    assert (found == []) is ((least or 1) <= count <= (most or 4000))


@pytest.mark.parametrize("row", ELASTIC_CHANGES, ids=[row.name for row in ELASTIC_CHANGES])
def test_bad_changes_of_an_elastic_job_are_refused(row: Bad) -> None:
    said = " | ".join(str(problem) for problem in problems_of_change(row.manifest, ELASTIC_BEFORE))
    for part in row.says:
        assert part in said


@pytest.mark.parametrize("name", ELASTIC_CHANGES_TAKEN)
def test_the_number_of_elastic_workers_may_change(name: str) -> None:
    assert problems_of_change(ELASTIC_CHANGES_TAKEN[name], ELASTIC_BEFORE) == []
