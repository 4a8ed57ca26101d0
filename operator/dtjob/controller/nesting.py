"""Nesting: a job's template may be nested as deep as the API server takes (10,000 levels), and Python is not.

Whatever walks such a job (copies, checks, writes JSON) would raise RecursionError; so what is too deep never gets in.
"""

from __future__ import annotations

from dtjob.controller.status_client import deeper_than
from dtjob.objects.manifest import Manifest

DEEPEST = 64
"""Levels of a job, from the manifest on; a pod template has about 15."""
TOO_DEEP = {"nested": f"more than {DEEPEST} levels deep"}
"""What stands for a spec that is nested deeper."""
TOO_DEEP_MESSAGE = (
    f"spec is nested more than {DEEPEST} levels deep, which no pod is; delete the job, remove that part of its "
    "templates and apply it again"
)


def shallow(job: Manifest) -> Manifest:
    """The job, or where it is nested too deep, what of it is not: `TOO_DEEP` for its spec."""
    if not deeper_than(job, DEEPEST):
        return job
    metadata = {name: value for name, value in job["metadata"].items() if not deeper_than(value, DEEPEST)}
    metadata.pop("managedFields", None)  # as deep as what they speak of, and cut where a parser has cut them
    status = job.get("status") or {}
    kept = {**job, "metadata": metadata, "spec": dict(TOO_DEEP)}
    return {**kept, "status": {} if deeper_than(status, DEEPEST) else status}
