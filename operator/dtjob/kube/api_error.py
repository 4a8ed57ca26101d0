# SPDX-License-Identifier: Apache-2.0
"""Errors of an API server, in words for users."""

from typing import Any

from dtjob.client.errors import seconds_of, status_of
from dtjob.controller.cluster import ClusterError, Refused
from dtjob.kube import deep_json

LONGEST_RETRY_AFTER = 60.0
"""Seconds for which an answer can have us wait. A proxy may ask for an hour, and nothing would be watched then."""


class ApiError(ClusterError):
    """The API server's own answer: `code` is the HTTP status, `reason` Kubernetes' word for it."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(message or reason or f"HTTP {code}")
        self.code = code
        self.reason = reason
        self.names_missing = self.passes

    @property
    def passes(self) -> bool:
        """Whether a refusal may go away by itself in a moment: a new namespace's service account is made a little
        later."""
        return self.code == 403 and "service account" in str(self) and "not found" in str(self)

    @property
    def is_anothers_uid(self) -> bool:
        """Whether a call names an object's uid, and another one has the name. In a patch the uid may count as a change
        of a field that cannot change. Any other conflict says nothing about the uid."""
        if self.code == 409:
            return "Precondition failed: UID" in str(self)
        return self.code == 422 and "metadata.uid" in str(self)

    def is_gone(self, name: str) -> bool:
        """Whether there is no object of this name, though its kind is served."""
        return self.code == 404 and f'"{name}" not found' in str(self)

    @property
    def too_large(self) -> bool:
        """Whether etcd would not have the object, or the API server's connection to etcd."""
        return self.code == 500 and any(words in str(self) for words in ("too large", "larger than max"))


class NotServed(Refused):
    """The API server does not serve this kind of objects."""


def error_of(code: int, text: bytes, retry_after: str | None = None) -> ApiError:
    """The error of an answer with this HTTP status, body and Retry-After."""
    error = ApiError(code, *status_of(text))
    error.retry_after = min(seconds_of(retry_after) or 0.0, LONGEST_RETRY_AFTER)
    return error


def object_of(code: int, text: bytes) -> dict[str, Any]:
    """The object of an answer that says that all went well. Raises ClusterError where it is none: a proxy answered, or
    whoever else listens where the API server should."""
    try:
        found = deep_json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise ClusterError(f"what answered is no API server: HTTP {code}: {text[:200]!r}")
    return found
