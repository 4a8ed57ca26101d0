# SPDX-License-Identifier: Apache-2.0
"""Rules about failurePolicy.rules: what of a rule that is taken can match at all."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dtjob.api.spec.failure_rules import Signal
from dtjob.crd.answers.problems import problems, to_job
from dtjob.plan.failure.cause import evidence_of
from dtjob.plan.failure.rules import match
from tests.refusals.failure_rules import evaluated
from tests.refusals.manifests import job
from tests.unit.operator import builders

EVIDENCE = [evidence_of({"metadata": {"name": "a"}, "status": builders.ended(code)}) for code in range(256)]
"""Of a pod that ended so."""
CODES = st.builds(
    lambda operator, values: {"onExitCodes": {"operator": operator, "values": values}},
    st.sampled_from(("In", "NotIn")),
    st.lists(st.integers(-1, 256), max_size=4),
)
SIGNALS = st.builds(lambda values: {"onSignals": values}, st.lists(st.sampled_from(Signal).map(str), max_size=3))


@given(criterion=CODES | SIGNALS, program=st.booleans())
def test_a_rule_that_is_taken_matches_some_end_of_a_container_and_not_each(
    criterion: dict[str, Any], program: bool
) -> None:
    made = evaluated({"action": "FailJob", **criterion})
    if not program:
        del made["spec"]["program"]
    if problems(made):
        return
    (rule,), chief = to_job(made).spec.failure_policy.rules, builders.task("chief-0")
    ends = [code for code in range(256) if code != 75 or not program]
    matched = [code for code in ends if match(rule, EVIDENCE[code], chief.role)]
    assert matched
    assert 0 not in matched
    assert len(matched) < len(ends)


@given(stall=st.none() | st.integers(10, 100), active=st.none() | st.integers(1, 100))
def test_a_stall_is_found_before_the_job_has_failed(stall: int | None, active: int | None) -> None:
    made = job(failurePolicy={"stallTimeoutSeconds": stall}, activeDeadlineSeconds=active)
    assert (problems(made) == []) is (stall is None or active is None or stall < active)


@given(stall=st.none() | st.just(600), reasons=st.lists(st.sampled_from(["Stalled", "Error"]), min_size=1, unique=True))
def test_a_rule_on_stalls_needs_them_to_be_found(stall: int | None, reasons: list[str]) -> None:
    made = job(failurePolicy={"stallTimeoutSeconds": stall, "rules": [{"action": "FailJob", "onReasons": reasons}]})
    assert (problems(made) == []) is (stall is not None or "Stalled" not in reasons)
