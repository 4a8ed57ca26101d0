# SPDX-License-Identifier: Apache-2.0
"""Nesting: an API server stores templates of 10,000 levels, and Python cannot walk so many.

Whatever walks such a job (copies, checks, writes JSON) would raise RecursionError; so what is too deep never gets in.
"""

from typing import Any

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
    # managedFields are as deep as what they speak of, and cut where a parser has cut them.
    metadata = {name: value for name, value in job["metadata"].items() if name != "managedFields"}
    instead = {"spec": dict(TOO_DEEP), "status": {}}
    too_deep = {name: other for name, other in instead.items() if deeper_than(job.get(name), DEEPEST - 1)}
    return {**job, "metadata": metadata, **too_deep}


def deeper_than(value: Any, levels: int) -> bool:
    """Whether objects and lists are nested in it more than so many levels deep; found without recursion."""
    layer = [value] if isinstance(value, (dict, list)) else []
    while layer and levels:
        inner = (more for one in layer for more in (one.values() if isinstance(one, dict) else one))
        layer, levels = [one for one in inner if isinstance(one, (dict, list))], levels - 1
    return bool(layer)
