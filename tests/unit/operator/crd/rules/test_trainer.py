# SPDX-License-Identifier: Apache-2.0
"""Rules between two fields of which the user may leave out either: the default is the models' own."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dtjob.api.spec.failure_policy import Backoff
from dtjob.crd.answers.problems import problems
from tests.refusals.manifests import job


def some_of(**fields: st.SearchStrategy[int]) -> st.SearchStrategy[dict[str, int]]:
    return st.fixed_dictionaries({}, optional=fields)


seconds = st.sampled_from([0, 9, 10, 11, 299, 300, 301])


def fields(**blocks: Any) -> list[str]:
    return [problem.field for problem in problems(job(**blocks))]


@given(some_of(initialSeconds=seconds, maxSeconds=seconds))
def test_the_longest_wait_is_not_below_the_first(backoff: dict[str, int]) -> None:
    whole = Backoff.model_validate(backoff)
    wrong = ["spec.failurePolicy.backoff.maxSeconds"] if whole.max_seconds < whole.initial_seconds else []
    assert fields(failurePolicy={"backoff": backoff}) == wrong
