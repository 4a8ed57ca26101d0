# SPDX-License-Identifier: Apache-2.0
"""dtjob's definition under groups of their own, after a change of its schema."""

import uuid
from collections.abc import Callable
from copy import deepcopy

from dtjob.crd import definition
from dtjob.crd.schema import VALIDATIONS
from tools.cluster.rest import Api, Object

Change = Callable[[Object], None]
Install = Callable[[Change], str]


def install(api: Api, change: Change) -> str:
    """Install the definition after a change of its schema; gives its group."""
    crd = deepcopy(definition.crd())
    group = f"g{uuid.uuid4().hex[:8]}.example.com"
    crd["spec"]["group"], crd["metadata"]["name"] = group, name_in(group)
    # A definition that shares short names with another is never served under them.
    crd["spec"]["names"] = {key: crd["spec"]["names"][key] for key in ("kind", "listKind", "plural", "singular")}
    change(crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
    api.create("customresourcedefinitions", None, crd)
    api.wait_established(name_in(group))
    return group


def name_in(group: str) -> str:
    """The definition's name."""
    return f"distributedtrainingjobs.{group}"


def changeable(schema: Object) -> None:
    """Remove the rules that keep the spec from changing."""
    for part in (schema, schema["properties"]["spec"]):
        part[VALIDATIONS] = [one for one in part[VALIDATIONS] if "cannot be changed" not in one["message"]]
