# SPDX-License-Identifier: Apache-2.0
"""Rules about failurePolicy.rules: what of a rule that is taken can match at all."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dtjob.api.spec.failure_rules import Signal
from dtjob.crd.answers.problems import problems, to_job, useless_fields
from dtjob.plan.failure.cause import evidence_of
from dtjob.plan.failure.rules import match
from tests.refusals.failure_rules import evaluated
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
    if problems(made) or useless_fields(made):
        return
    (rule,), chief = to_job(made).spec.failure_policy.rules, builders.task("chief-0")
    ends = [code for code in range(256) if code != 75 or not program]
    matched = [code for code in ends if match(rule, EVIDENCE[code], chief.role)]
    assert matched
    assert 0 not in matched
    assert len(matched) < len(ends)
