# SPDX-License-Identifier: Apache-2.0
"""`dtjob convert`: reads TFJobs, and gives dtjobs with a line for each thing that is lost."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dtjob.bad_input import BadInput
from dtjob.cli.convert.findings import CannotConvert
from dtjob.cli.convert.others import of_helm, of_kind
from dtjob.cli.convert.tfjob import Converted, convert, is_tfjob
from dtjob.manifests.manifest_yaml import written
from dtjob.manifests.stream import Document, read_documents


@dataclass(frozen=True)
class Answer:
    """What the command prints. `code`: 0 if nothing of meaning is lost, 1 if there are warnings."""

    output: str
    lines: list[str]
    code: int


def answer(files: Sequence[Path], *, program: bool, as_json: bool) -> Answer:
    """Convert every TFJob in these files. Raises BadInput if one cannot be converted, and then prints none."""
    found = read_documents(files)
    if not any(is_tfjob(one.content) for one in found):
        advised = [f"{one.where}: {_kind(one.content)}{advice}" for one in found if (advice := of_kind(one.content))]
        if advised:
            raise BadInput(*advised)
        names = ", ".join("standard input" if str(file) == "-" else str(file) for file in files)
        raise BadInput(f"{names}: has no TFJob of kubeflow.org/v1; give a manifest with one")
    made: list[Any] = []
    lines: list[str] = []
    wrong: list[str] = []
    code = 0
    for document in found:
        if not is_tfjob(document.content):
            made.append(document.content)
            advice = of_kind(document.content) or " is no TFJob"
            lines.append(f"note: {document.where}: {_kind(document.content)}{advice}; it stays as it is")
            continue
        try:
            result = convert(document.content, program=program)
        except CannotConvert as error:
            wrong.append(f"{_where(document)}: cannot be converted: {error}{of_helm(str(error))}")
            continue
        made.append(result.manifest)
        lines += [finding.said_of(_where(document)) for finding in result.findings]
        code = max(code, _code(result))
    if wrong:
        raise BadInput(*wrong)
    return Answer(_as_json(made) if as_json else written(made), lines, code)


def _code(result: Converted) -> int:
    return int(any(finding.warning for finding in result.findings))


def _where(document: Document) -> str:
    metadata = document.content.get("metadata")
    name = metadata.get("name") or metadata.get("generateName") if isinstance(metadata, dict) else None
    return f"{document.where}: {name}" if name else document.where


def _kind(content: Any) -> str:
    return str(content.get("kind", "a document")) if isinstance(content, dict) else "a document"


def _as_json(made: list[Any]) -> str:
    whole = made[0] if len(made) == 1 else {"apiVersion": "v1", "kind": "List", "items": made}
    return json.dumps(whole, indent=2) + "\n"
