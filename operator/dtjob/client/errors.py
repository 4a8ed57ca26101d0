# SPDX-License-Identifier: Apache-2.0
"""What can go wrong between a user and a cluster, each as one sentence."""

import json


class ClientError(Exception):
    """The cluster cannot be asked, or says no."""


class NoCluster(ClientError):
    """No cluster is configured, or the configuration cannot be read."""


class BadName(ClientError):
    """No object can have this name, so the cluster is not asked."""


class Unreachable(ClientError):
    """The API server does not answer."""


class ApiError(ClientError):
    """The answer of the API server. `code` is the HTTP status, `reason` the word of Kubernetes for it."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.code, self.reason = code, reason


class NotFound(ApiError):
    """There is no such object, or the cluster does not know its kind."""


class Forbidden(ApiError):
    """The user may not do this."""


class Conflict(ApiError):
    """An object of this name exists, or it has changed meanwhile."""


class Unavailable(ApiError):
    """The API server cannot serve this call now. A later try may succeed. `retry_after`: seconds that it asks for."""

    retry_after: float | None = None


class Ended(ClientError):
    """This client was told to end its calls."""


class NotDone(ClientError):
    """The cluster has taken what was asked for, and it did not happen."""


class TimedOut(ClientError):
    """What was asked for has not happened in time."""


TEMPORARY = (Unreachable, Unavailable)
"""What is tried again."""
_TEMPORARY_CODES = (429, 500, 502, 503, 504)
_OF_CODE: dict[int, type[ApiError]] = {
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    **dict.fromkeys(_TEMPORARY_CODES, Unavailable),
}


def error_of(code: int, text: bytes, retry_after: str | None = None) -> ApiError:
    """The error of an answer with this HTTP status, body and header Retry-After."""
    try:
        status = json.loads(text)
        reason, message = str(status.get("reason") or ""), " ".join(str(status.get("message") or "").split())
    except (ValueError, AttributeError):
        reason, message = "", text[:200].decode(errors="replace").strip()
    if text.startswith(b"404 page not found"):
        message = "the cluster does not know this kind of object: is dtjob installed there? dtjob doctor says more"
    if code == 401:
        message = "the cluster does not accept your credentials (Unauthorized); log in again"
    error = _OF_CODE.get(code, ApiError)(code, reason, message or f"HTTP {code}")
    if isinstance(error, Unavailable) and retry_after is not None and retry_after.isdecimal():  # else it is a date
        error.retry_after = float(retry_after)
    return error
