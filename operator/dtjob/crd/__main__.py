# SPDX-License-Identifier: Apache-2.0
"""Writes the files that are made from the models and the rules: the definition and the JSON schema.

python -m dtjob.crd             # writes crds/ and the chart's copy of the definition
python -m dtjob.crd --check     # exit code 1 if a file is not what would be written
"""

from __future__ import annotations

import sys
from pathlib import Path

from dtjob.api.job import KIND, PLURAL, VERSION
from dtjob.crd import json_schema
from dtjob.crd.definition import KEEP, text

ROOT = Path(__file__).resolve().parents[3]
FILE = ROOT / "crds" / f"{PLURAL}.yaml"
CHART_FILE = ROOT / "helm" / "dtjob" / "files" / "crd.yaml"
JSON_SCHEMA_FILE = ROOT / "crds" / "json-schema" / f"{KIND.lower()}_{VERSION}.json"
"""By the name that kubeconform looks for."""


def files() -> dict[Path, str]:
    """Each file that is made from here, and its content."""
    return {FILE: text(), CHART_FILE: text(KEEP), JSON_SCHEMA_FILE: json_schema.text()}


def main(arguments: list[str]) -> int:
    """Write the files, or with `--check` compare them. Returns the exit code; 2 for other arguments."""
    if arguments not in ([], ["--check"]):
        print("usage: python -m dtjob.crd [--check]", file=sys.stderr)  # noqa: T201
        return 2
    stale = {file: wanted for file, wanted in files().items() if not (file.exists() and file.read_text() == wanted)}
    for file, wanted in stale.items():
        if arguments:
            print(f"{file} is not fresh: run `python -m dtjob.crd`", file=sys.stderr)  # noqa: T201
        else:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(wanted)
    return 1 if arguments and stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
