# SPDX-License-Identifier: Apache-2.0
"""Rules about policies: which failures a rule can match, the bounds of elastic workers, and keys of labels."""

from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from dtjob.api.spec.failure_rules import Signal
from dtjob.crd.answers.problems import problems, to_job, useless_fields
from dtjob.plan.failure.cause import evidence_of
from dtjob.plan.failure.rules import match
from tests.refusals.elastic import elastic
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
    if problems(made) or useless_fields(made):
        return
    (rule,), chief = to_job(made).spec.failure_policy.rules, builders.task("chief-0")
    ends = [code for code in range(256) if code != 75 or not program]
    matched = [code for code in ends if match(rule, EVIDENCE[code], chief.role)]
    assert matched
    assert 0 not in matched
    assert len(matched) < len(ends)


NUMBER = st.integers(1, 20)


@given(count=NUMBER, least=st.none() | NUMBER, most=st.none() | NUMBER)
def test_replicas_lie_between_min_and_max_replicas(count: int, least: int | None, most: int | None) -> None:
    found = problems(elastic(replicas=count, least=least, most=most))
    assert (found == []) is ((least or 1) <= count <= (most or 4000))


@settings(max_examples=30)
@given(prefix=st.none() | st.from_regex(r"[a-z0-9.-]{1,12}", fullmatch=True), name=st.text("aZ0-_./=", max_size=65))
@example("a.b", "rack")
@example(None, "a" * 63)
@example(None, "a" * 64)
def test_a_label_has_a_subdomain_and_a_name(prefix: str | None, name: str):
    key = name if prefix is None else f"{prefix}/{name}"
    parts = key.split("/")
    plain = all(one.isalnum() or one in "-_." for one in parts[-1])
    named = 0 < len(parts[-1]) <= 63 and plain and parts[-1][0].isalnum() and parts[-1][-1].isalnum()
    domain = parts[0].split(".") if len(parts) == 2 else []
    of_domain = all(one and one.replace("-", "a").isalnum() and one == one.lower() for one in domain)
    prefixed = of_domain and all(one[0] != "-" and one[-1] != "-" and "_" not in one for one in domain)
    good = len(parts) <= 2 and named and (prefixed if len(parts) == 2 else True)
    assert (problems(job(scheduling={"topology": {"required": key}})) == []) is good
