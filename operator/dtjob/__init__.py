# SPDX-License-Identifier: Apache-2.0
"""dtjob: a Kubernetes operator for distributed TensorFlow training.

    from dtjob import Client, Job

The names of the Python client are imported when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dtjob.api.job import Job
    from dtjob.bad_input import BadInput
    from dtjob.client.errors import ClientError, JobFailed, NotFound, NotReached, Refused, Unavailable
    from dtjob.sdk.client import Client
    from dtjob.sdk.local_job import LocalJob
    from dtjob.sdk.remote_job import RemoteJob
    from dtjob.sdk.started_job import StartedJob

__version__ = "0.1.0"
__all__ = ["BadInput", "Client", "ClientError", "Job", "JobFailed", "LocalJob", "NotFound", "NotReached", "Refused"]
__all__ += ["RemoteJob", "StartedJob", "Unavailable", "__version__"]

_PLACES = {
    "BadInput": "dtjob.bad_input",
    **dict.fromkeys(
        ("ClientError", "JobFailed", "NotFound", "NotReached", "Refused", "Unavailable"), "dtjob.client.errors"
    ),
    "Client": "dtjob.sdk.client",
    "Job": "dtjob.api.job",
    "LocalJob": "dtjob.sdk.local_job",
    "RemoteJob": "dtjob.sdk.remote_job",
    "StartedJob": "dtjob.sdk.started_job",
}


def __getattr__(name: str) -> Any:
    """A name of the Python client."""
    if name not in _PLACES:
        raise AttributeError(f"module 'dtjob' has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), name)
