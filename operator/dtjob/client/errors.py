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


_OF_CODE: dict[int, type[ApiError]] = {403: Forbidden, 404: NotFound, 409: Conflict}


def error_of(code: int, text: bytes) -> ApiError:
    """The error of an answer with this HTTP status and body."""
    try:
        status = json.loads(text)
        reason, message = str(status.get("reason") or ""), " ".join(str(status.get("message") or "").split())
    except (ValueError, AttributeError):
        reason, message = "", text[:200].decode(errors="replace").strip()
    if code == 401:
        message = "the cluster does not accept your credentials (Unauthorized); log in again"
    return _OF_CODE.get(code, ApiError)(code, reason, message or f"HTTP {code}")
