# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.rendezvous.claims: nothing follows from a claim before its name leads to it."""

import pytest

from dtjob_trainer.rendezvous.claims import name_problem, plain


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
