"""Rules about stallTimeoutSeconds, over all numbers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dtjob.crd.problems import problems
from tests.refusals.manifests import job


@given(stall=st.none() | st.integers(10, 100), active=st.none() | st.integers(1, 100))
def test_a_stall_is_found_before_the_job_has_failed(stall: int | None, active: int | None) -> None:
    made = job(failurePolicy={"stallTimeoutSeconds": stall}, activeDeadlineSeconds=active)
    assert (problems(made) == []) is (stall is None or active is None or stall < active)


@given(stall=st.none() | st.just(600), reasons=st.lists(st.sampled_from(["Stalled", "Error"]), min_size=1, unique=True))
def test_a_rule_on_stalls_needs_them_to_be_found(stall: int | None, reasons: list[str]) -> None:
    made = job(failurePolicy={"stallTimeoutSeconds": stall, "rules": [{"action": "FailJob", "onReasons": reasons}]})
    assert (problems(made) == []) is (stall is not None or "Stalled" not in reasons)
