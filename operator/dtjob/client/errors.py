# SPDX-License-Identifier: Apache-2.0
"""What can go wrong between a user and a cluster, each as one sentence."""

import json


class ClientError(Exception):
    """The cluster cannot be asked, or something was not done."""


class NoCluster(ClientError):
    """No cluster is configured, or the configuration cannot be read."""


class BadName(ClientError):
    """No object can have this name, so the cluster is not asked."""


class NotReached(ClientError):
    """The API server does not answer."""


class Refused(ClientError):
    """The API server refuses the call, or the state of the job does not allow it.

    `code` is the HTTP status and `reason` the word of Kubernetes for it, if the API server has refused.
    """

    def __init__(self, message: str, code: int = 0, reason: str = "") -> None:
        super().__init__(message)
        self.code, self.reason = code, reason


class NotFound(Refused):
    """There is no such object, or the cluster does not know its kind."""


class Forbidden(Refused):
    """The user may not do this."""


class Conflict(Refused):
    """An object of this name exists, or it has changed meanwhile."""


class TooOld(Refused):
    """The API server no longer knows what came after a version."""


class Unavailable(ClientError):
    """The API server cannot serve this call now. A later try may succeed. `retry_after`: seconds that it asks for."""

    def __init__(self, message: str, code: int = 503, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.code, self.retry_after = code, retry_after


class Ended(ClientError):
    """This client was told to end its calls."""


class NotDone(ClientError):
    """The cluster has taken what was asked for, and it did not happen."""


class JobFailed(NotDone):
    """The job ended in another state than the one waited for, or waits for its user. The message says why."""


class TimedOut(NotDone, TimeoutError):
    """What was asked for has not happened in time."""


TEMPORARY = (NotReached, Unavailable)
"""What is tried again."""
_TEMPORARY_CODES = (429, 500, 502, 503, 504)
_OF_CODE: dict[int, type[Refused]] = {403: Forbidden, 404: NotFound, 409: Conflict, 410: TooOld}


def error_of(code: int, text: bytes, retry_after: str | None = None) -> Refused | Unavailable:
    """The error of an answer with this HTTP status, body and header Retry-After."""
    reason, message = status_of(text)
    if text.startswith(b"404 page not found"):
        message = "the cluster does not know this kind of object: is dtjob installed there? dtjob doctor says more"
    if code == 401:
        message = "the cluster does not accept your credentials (Unauthorized); log in again"
    message = message or f"HTTP {code}"
    if code in _TEMPORARY_CODES:
        return Unavailable(message, code, seconds_of(retry_after))
    return _OF_CODE.get(code, Refused)(message, code, reason)


def status_of(text: bytes) -> tuple[str, str]:
    """The reason and the message of an answer that is no good one. A proxy may answer something else than JSON."""
    try:
        status = json.loads(text)
        return str(status.get("reason") or ""), " ".join(str(status.get("message") or "").split())
    except ValueError:
        return "", text[:200].decode(errors="replace").strip()
    except AttributeError:
        return "", ""


def seconds_of(retry_after: str | None) -> float | None:
    """The seconds of a header Retry-After. None without one, and for a date, which a proxy may write."""
    return float(retry_after) if retry_after is not None and retry_after.isdecimal() else None
