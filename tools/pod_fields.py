# SPDX-License-Identifier: Apache-2.0
"""The fields of a pod's spec, for `dtjob validate`. They are read from the Kubernetes client and written to
operator/dtjob/crd/answers/pod_fields.py.

    python -m tools.pod_fields      # after another version of the package kubernetes was installed (`make pod-fields`)

The definition of jobs has no room for them: a container alone has 27 fields, and the definition has it eight times.
"""

import re
import textwrap
from pathlib import Path

from kubernetes import client
from kubernetes.client import models

FILE = Path(__file__).resolve().parents[1] / "operator" / "dtjob" / "crd" / "answers" / "pod_fields.py"
ROOTS = ("V1PodSpec", "V1Volume")
QUANTITIES = {"limits", "requests", "overhead", "sizeLimit", "divisor"}
"""Fields whose value, or whose values, are quantities, which are text or numbers. To the client they are text."""
_PLAIN = {"str": "text", "datetime": "text", "int": "int", "bool": "bool", "object": "any"}
_PORT = "port"
"""A field of which the client knows no type, as it is a number or the name of one."""
_HEAD = '''# SPDX-License-Identifier: Apache-2.0
"""The fields of a pod's spec in Kubernetes {version}, by type. Made by `python -m tools.pod_fields`.

A line begins with a type. Of its fields, `[x]` is a list of x, and `{{x}}` has names with values x.
"""

VERSION = "{version}"

FIELDS = """
'''


def text() -> str:
    """The content of the file, for the installed client."""
    types: dict[str, dict[str, str]] = {}
    waiting = list(ROOTS)
    while waiting:
        name = waiting.pop()
        if name not in types:
            model = getattr(models, name)
            types[name] = {model.attribute_map[own]: kind for own, kind in model.openapi_types.items()}
            waiting += [found for kind in types[name].values() for found in re.findall(r"\w*V1\w+", kind)]
    lines = (
        f"{_short(name)} {' '.join(_field(*field) for field in types[name].items())}"
        for name in sorted(types, key=_short)
    )
    body = "\n".join(textwrap.fill(line, 120, subsequent_indent="  ", break_long_words=False) for line in lines)
    return _HEAD.format(version=f"1.{client.__version__.partition('.')[0]}") + body + '\n"""\n'


def _field(name: str, kind: str) -> str:
    if inner := re.fullmatch(r"[Ll]ist\[(.+)\]", kind):
        return f"{name}=[{_type(name, inner[1])}]"
    if inner := re.fullmatch(r"[Dd]ict[\[(]str, (.+)[\])]", kind):
        return f"{name}={{{_type(name, inner[1])}}}"
    return f"{name}={_type(name, kind)}"


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
