# SPDX-License-Identifier: Apache-2.0
"""The fields of a pod's spec, for `dtjob validate`. They are read from the Kubernetes client and written to
operator/dtjob/crd/answers/pod_fields.json.

    python -m tools.pod_fields      # after another version of the package kubernetes was installed (`make pod-fields`)

The definition of jobs has no room for them: a container alone has 27 fields, and the definition has it eight times.
"""

import json
import re
from pathlib import Path

from kubernetes.client import models

FILE = Path(__file__).resolve().parents[1] / "operator" / "dtjob" / "crd" / "answers" / "pod_fields.json"
ROOTS = ("V1PodSpec", "V1Volume")
QUANTITIES = {"limits", "requests", "overhead", "sizeLimit", "divisor"}
"""Fields whose value, or whose values, are quantities, which are text or numbers. To the client they are text."""
_PLAIN = {"str": "text", "datetime": "text", "int": "int", "bool": "bool", "object": "any"}
_PORT = "port"
"""A field of which the client knows no type, as it is a number or the name of one."""


def text() -> str:
    """The content of the file, for the installed client: the fields of each type with their types."""
    types: dict[str, dict[str, str]] = {}
    waiting = list(ROOTS)
    while waiting:
        name = waiting.pop()
        if name not in types:
            model = getattr(models, name)
            types[name] = {model.attribute_map[own]: kind for own, kind in model.openapi_types.items()}
            waiting += [found for kind in types[name].values() for found in re.findall(r"\w*V1\w+", kind)]
    fields = {_short(name): dict(_field(*field) for field in types[name].items()) for name in sorted(types, key=_short)}
    return json.dumps(fields, indent=1) + "\n"


def _field(name: str, kind: str) -> tuple[str, str]:
    """A field's name and type: `[x]` is a list of x, and `{x}` has names with values x."""
    if inner := re.fullmatch(r"[Ll]ist\[(.+)\]", kind):
        return name, f"[{_type(name, inner[1])}]"
    if inner := re.fullmatch(r"[Dd]ict[\[(]str, (.+)[\])]", kind):
        return name, f"{{{_type(name, inner[1])}}}"
    return name, _type(name, kind)


def _type(name: str, kind: str) -> str:
    if kind not in _PLAIN:
        return _short(kind)
    if name in QUANTITIES:
        return "quantity"
    return _PORT if (name, kind) == (_PORT, "object") else _PLAIN[kind]


def _short(name: str) -> str:
    return re.sub(r"^(Core)?V1", "", name)


if __name__ == "__main__":
    FILE.write_text(text())
