# SPDX-License-Identifier: Apache-2.0
"""The schema of a whole manifest without descriptions, as `make crd` has written it beside this file.

To make it from the models takes a fifth of the time of a command.
"""

import json
import pkgutil
from functools import cache
from typing import Any

from dtjob.api.object_meta import ObjectMeta
from dtjob.crd.schema import Schema, spec_schema, structural

FILE = "manifest_schema.json"
"""Its name, beside this file."""


@cache
def manifest_schema() -> Schema:
    """The schema from the file. Treat as read only."""
    found: Schema = json.loads(pkgutil.get_data(__package__, FILE) or b"")
    return found


def text() -> str:
    """The content of the file."""
    parts = {"spec": spec_schema(), "metadata": structural(ObjectMeta), "apiVersion": {}, "kind": {}}
    return json.dumps(_without_descriptions({"type": "object", "properties": parts}), indent=1) + "\n"


def _without_descriptions(part: Any) -> Any:
    """A description is text; a field of this name is a schema."""
    if not isinstance(part, dict):
        return part
    kept = {name: one for name, one in part.items() if name != "description" or not isinstance(one, str)}
    return {name: _without_descriptions(one) for name, one in kept.items()}
