# SPDX-License-Identifier: Apache-2.0
"""An API server's refusals."""

import pytest

from dtjob.kube.api_error import ApiError, error_of


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b'{"reason": "Forbidden", "message": "exceeded quota"}', "exceeded quota"),
        (b'{"reason": "Forbidden"}', "Forbidden"),
        (b"<html>bad gateway</html>", "bad gateway"),
        (b"[]", "HTTP 403"),
        (b"", "HTTP 403"),
    ],
)
def test_an_api_error_says_the_message_the_reason_or_the_code(text: bytes, said: str) -> None:
    error = error_of(403, text)
    assert error.code == 403
    assert said in str(error)


def test_a_service_account_that_is_not_there_yet_passes() -> None:
    missing = 'pods "a" is forbidden: error looking up service account a/default: serviceaccount "default" not found'
    assert ApiError(403, "Forbidden", missing).passes
    assert ApiError(403, "Forbidden", missing).names_missing
    assert not ApiError(403, "Forbidden", "exceeded quota").passes
