# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.rendezvous.claims: nothing follows from a claim before its name leads to it."""

import pytest

from dtjob_trainer.rendezvous.claims import MOST_CLAIMS, Claims, name_problem, plain
from tests.unit.trainer.rendezvous.groups import registration

NEW = registration("worker-0", attempt=1)


def test_a_claim_without_an_address_needs_no_name() -> None:
    assert Claims().leads_to("chief-0", None)
    assert not Claims().leads_to("chief-0", "10.0.0.1")


def test_a_claim_is_true_once_its_name_leads_there() -> None:
    claims = Claims()
    claims.claim(NEW, "::ffff:10.0.0.2", 5)
    assert claims.claimed(NEW)
    assert claims.looked_for("worker-0", "10.0.0.1", 0) == ["10.0.0.1", "10.0.0.2"]
    assert claims.resolved("worker-0", "w", ["10.0.0.1"], "10.0.0.1") == []
    assert claims.looked_for("worker-0", "10.0.0.1", 0) == ["10.0.0.2"]
    assert claims.resolved("worker-0", "w", ["10.0.0.2"], "10.0.0.1") == [(NEW, "10.0.0.2", 5)]
    assert not claims.claimed(NEW)
    assert claims.problem("worker-0") == "its name w resolves to 10.0.0.2, but it registered from 10.0.0.1"


def test_a_name_that_cannot_be_looked_up_leads_where_it_led() -> None:
    claims = Claims()
    assert claims.problem("worker-0") == "looking up its name"
    claims.resolved("worker-0", "w", ["10.0.0.1"], None)
    claims.failed("worker-0", "no name server")
    assert claims.leads_to("worker-0", "10.0.0.1")
    assert claims.problem("worker-0") == "no name server"


def test_claims_are_few_and_grow_old() -> None:
    claims = Claims()
    for number in range(10):
        claims.claim(NEW, f"10.0.0.{number}", number)
    assert claims.looked_for("worker-0", None, 0) == [f"10.0.0.{number}" for number in range(10 - MOST_CLAIMS, 10)]
    assert claims.looked_for("worker-0", None, 9) == ["10.0.0.9"]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("::ffff:10.0.0.1", "10.0.0.1", True),
        ("fe80::1%eth0", "fe80:0::1", True),
        ("10.0.0.1", "10.0.0.2", False),
        ("not an address", "not an address", True),
    ],
)
def test_an_address_may_be_written_in_several_ways(one: str, other: str, same: bool) -> None:
    assert (plain(one) == plain(other)) is same


def test_a_name_must_lead_to_where_the_task_registered_from() -> None:
    assert name_problem("w", ["10.0.0.2", "10.0.0.1"], "::ffff:10.0.0.1") is None
    assert name_problem("w", ["10.0.0.2"], "10.0.0.1") == (
        "its name w resolves to 10.0.0.2, but it registered from 10.0.0.1"
    )


@pytest.mark.parametrize("sidecar", ["127.0.0.6", "127.0.0.1", "::1"])
def test_the_message_says_that_a_service_mesh_is_between_the_pods(sidecar: str) -> None:
    problem = name_problem("w", ["10.0.0.2"], sidecar)
    assert problem is not None
    assert "service mesh" in problem
    assert name_problem("localhost", [sidecar], sidecar) is None
