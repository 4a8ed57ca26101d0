# SPDX-License-Identifier: Apache-2.0
from typing import Any

import pytest

from dtjob.controller.stored_fields import DEEPEST, TOO_DEEP, shallow


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"a": value}
    return value


def test_a_job_as_jobs_are_stays_as_it_is() -> None:
    job = {"kind": "x", "metadata": {"name": "a"}, "spec": nested(DEEPEST - 1)}
    assert shallow(job) is job


@pytest.mark.parametrize("levels", [DEEPEST, 50_000])
def test_a_spec_that_is_too_deep_is_replaced_by_a_mark(levels: int) -> None:
    metadata = {"name": "a", "uid": "u", "managedFields": [nested(levels)]}
    made = shallow({"kind": "x", "metadata": metadata, "spec": nested(levels), "status": {"phase": "Running"}})
    assert made == {
        "kind": "x", "metadata": {"name": "a", "uid": "u"}, "spec": TOO_DEEP, "status": {"phase": "Running"},
    }  # fmt: skip


def test_a_status_that_is_too_deep_is_none() -> None:
    made = shallow({"metadata": {"name": "a"}, "spec": {"image": "x"}, "status": nested(DEEPEST)})
    assert (made["spec"], made["status"]) == ({"image": "x"}, {})
