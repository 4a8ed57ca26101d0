# SPDX-License-Identifier: Apache-2.0
"""Conditions have metav1.Condition's form."""

import pytest
from pydantic import ValidationError

from dtjob.api.status.condition import Condition, valid_reason
from tests.unit.operator import builders


@pytest.mark.parametrize(
    ("reason", "valid"),
    [("AllTasksRunning", True), ("A", True), ("Gone,Away:x_1", True), ("", False), ("no room", False), ("1st", False)],
)
def test_reasons_have_the_form_that_an_api_server_takes(reason: str, valid: bool):
    assert valid_reason(reason) == (reason if valid else "Unknown")
    stored = builders.condition("Running", reason=reason)
    if valid:
        assert Condition.model_validate(stored).reason == reason
    else:
        with pytest.raises(ValidationError):
            Condition.model_validate(stored)
