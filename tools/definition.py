# SPDX-License-Identifier: Apache-2.0
"""Writes the files that are made from the models and the rules: the definition and the JSON schema.

python -m tools.definition             # writes crds/, the chart's copy of the definition, and the
                                       # schema that the command line reads
python -m tools.definition --check     # exit code 1 if a file is not what would be written
"""

import sys
from pathlib import Path
from typing import Any

import yaml

from dtjob.api.job import KIND, PLURAL, VERSION
from dtjob.crd.answers import schemas
from dtjob.crd.definition import crd
from tools import json_schema

KEEP = {"helm.sh/resource-policy": "keep"}
"""Uninstalling the chart must not delete every job with their definition."""
HEADER = "# Made by `make crd` from operator/dtjob/api/ and the rules in operator/dtjob/crd/: change those, not this.\n"

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "crds" / f"{PLURAL}.yaml"
CHART_FILE = ROOT / "helm" / "dtjob" / "files" / "crd.yaml"
JSON_SCHEMA_FILE = ROOT / "crds" / "json-schema" / f"{KIND.lower()}_{VERSION}.json"
"""By the name that kubeconform looks for."""
MANIFEST_SCHEMA_FILE = Path(schemas.__file__).with_name(schemas.MANIFEST_FILE)


def text(annotations: dict[str, str] | None = None) -> str:
    """A file's content: the definition as YAML, with these annotations."""
    made = crd()
    made["metadata"] |= {"annotations": annotations} if annotations else {}
    return HEADER + yaml.dump(made, Dumper=_Plain, sort_keys=False, width=120, allow_unicode=True)


def files() -> dict[Path, str]:
    """Each file that is made from here, and its content."""
    return {
        FILE: text(),
        CHART_FILE: text(KEEP),
        JSON_SCHEMA_FILE: json_schema.text(),
        MANIFEST_SCHEMA_FILE: schemas.manifest_text(),
    }


def main(arguments: list[str]) -> int:
    """Write the files, or with `--check` compare them. Returns the exit code; 2 for other arguments."""
    if arguments not in ([], ["--check"]):
        print("usage: python -m tools.definition [--check]", file=sys.stderr)
        return 2
    stale = {file: wanted for file, wanted in files().items() if not (file.exists() and file.read_text() == wanted)}
    for file, wanted in stale.items():
        if arguments:
            print(f"{file} is not fresh: run `make crd`", file=sys.stderr)
        else:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(wanted)
    return 1 if arguments and stale else 0


MOST_ON_A_LINE, LONGEST_ON_A_LINE = 3, 80
"""Keys of a mapping that is written on one line, and characters of its keys and values."""


class _Plain(yaml.SafeDumper):
    """No anchors: the API server would take them, people do not."""

    def ignore_aliases(self, data: Any) -> bool:
        """Write everything out."""
        return True

    # A small schema, such as {type: integer, minimum: 1}, or a list of words on a line: read at a glance, and shorter.

    def represent_mapping(self, tag: str, mapping: Any, flow_style: bool | None = None) -> yaml.MappingNode:
        """On one line where it is small."""
        small = len(mapping) <= MOST_ON_A_LINE and _fits(*mapping, *mapping.values())
        return super().represent_mapping(tag, mapping, small or flow_style)

    def represent_sequence(self, tag: str, sequence: Any, flow_style: bool | None = None) -> yaml.SequenceNode:
        """On one line where it is small."""
        return super().represent_sequence(tag, sequence, _fits(*sequence) or flow_style)


def _fits(*parts: Any) -> bool:
    plain = all(isinstance(part, str | int | bool) for part in parts)
    return plain and sum(len(str(part)) for part in parts) <= LONGEST_ON_A_LINE


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
