# SPDX-License-Identifier: Apache-2.0
"""The schema of a whole manifest without descriptions, as `make crd` has written it beside this file.

To make it from the models takes a fifth of the time of a command.
"""

import json
import pkgutil
from functools import cache
from typing import Any

from dtjob.crd.answers.pod_schema import schema_of
from dtjob.crd.schema import Schema, spec_schema

FILE = "manifest_schema.json"
"""Its name, beside this file."""


@cache
def manifest_schema() -> Schema:
    """The schema from the file. Treat as read only."""
    found: Schema = json.loads(pkgutil.get_data(__package__, FILE) or b"")
    return found


def text() -> str:
    """The content of the file."""
    parts = {"spec": spec_schema(), "metadata": schema_of("ObjectMeta"), "apiVersion": {}, "kind": {}}
    return json.dumps(_plain({"type": "object", "properties": parts}), indent=1) + "\n"


def _plain(part: Any) -> Any:
    """The part without descriptions, and without nulls, which are left out before. These may be names of fields too."""
    if not isinstance(part, dict):
        return part
    noise = ("description", "nullable")
    kept = {name: one for name, one in part.items() if name not in noise or isinstance(one, dict)}
    return {name: _plain(one) for name, one in kept.items()}
