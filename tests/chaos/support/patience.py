# SPDX-License-Identifier: Apache-2.0
"""Calls that are repeated until the API server is back."""

import time
from collections.abc import Callable
from typing import TypeVar

from tools.cluster.rest import Api, ApiError

T = TypeVar("T")
PATIENCE_SECONDS = 300.0
NOT_READY = (401, 403, 408, 429)
"""Answers of an API server, beside 5xx, before it has read its own objects."""


def is_outage(error: Exception) -> bool:
    """Whether an error means only that the API server is away or not yet ready."""
    if isinstance(error, ApiError):
        return error.status >= 500 or error.status in NOT_READY
    return isinstance(error, (Api.UNREACHABLE, ValueError, OSError))  # ValueError: an answer that is no JSON


def patiently(call: Callable[[], T]) -> T:
    """The result of the call. Raises its error if it is no outage, or after PATIENCE_SECONDS."""
    limit = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return call()
        except (ApiError, Api.UNREACHABLE, ValueError, OSError, AssertionError) as error:
            outage = isinstance(error, AssertionError) or is_outage(error)  # kubectl's complaint is an AssertionError
            if not outage or time.monotonic() > limit:
                raise
        time.sleep(0.5)
