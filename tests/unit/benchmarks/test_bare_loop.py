# SPDX-License-Identifier: Apache-2.0
"""What the bare loop takes for an answer."""

import pytest

from benchmarks.peers.bare_loop import is_refused


@pytest.mark.parametrize(("method", "status"), [("POST", 201), ("PATCH", 200), ("DELETE", 200), ("PATCH", 404)])
def test_a_successful_call_and_a_missing_object_are_no_refusals(method: str, status: int) -> None:
    assert not is_refused(method, status)


@pytest.mark.parametrize(("method", "status"), [("POST", 409), ("POST", 404), ("PATCH", 422), ("DELETE", 403)])
def test_other_answers_are_refusals(method: str, status: int) -> None:
    assert is_refused(method, status)
