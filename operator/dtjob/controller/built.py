"""Building what is to be made, from templates of which the definition leaves most open."""

from __future__ import annotations

import logging

from dtjob.controller.cluster import Refused
from dtjob.objects.manifest import Manifest
from dtjob.plan.actions import Create

logger = logging.getLogger(__name__)


def built(create: Create) -> Manifest:
    """The object that is to be made. Raises Refused where its template has a value over which its builder stumbles:
    nothing but another template helps, as with one that the API server refuses."""
    try:
        return create.manifest
    except Exception as error:
        logger.exception("%s %s cannot be built", create.kind, create.name)
        said = f"{type(error).__name__}: {str(error)[:200]}"
        raise Refused(f"the pod template has a value of another form than a pod's ({said})") from error
