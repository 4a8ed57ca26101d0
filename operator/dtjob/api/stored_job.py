# SPDX-License-Identifier: Apache-2.0
"""A job as a cluster stores it, read leniently: fields that this version does not know are ignored.

So an operator that is rolled back runs the jobs that a newer one let in. `dtjob validate` and the API server are
strict.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import Any

from pydantic import ValidationError

from dtjob.api.job import Job

_UNKNOWN = "extra_forbidden"


def stored_job(manifest: Mapping[str, Any]) -> Job:
    """The job of a stored manifest. Raises pydantic's ValidationError if a field that this version knows is wrong."""
    try:
        return Job.model_validate(manifest)
    except ValidationError as error:
        details = error.errors(include_url=False, include_input=False)
        unknown = [detail["loc"] for detail in details if detail["type"] == _UNKNOWN]
        if not unknown:
            raise
    return Job.model_validate(_without(manifest, unknown))


def _without(manifest: Mapping[str, Any], locations: Iterable[tuple[int | str, ...]]) -> dict[str, Any]:
    """A copy without what is at these locations."""
    whole: Any = deepcopy(dict(manifest))
    for location in locations:
        block = whole
        for part in location[:-1]:
            block = block[part]
        del block[location[-1]]
    return dict(whole)
