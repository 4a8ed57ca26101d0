# SPDX-License-Identifier: Apache-2.0
"""`dtjob convert`: reads TFJobs, and gives dtjobs with a line for each thing that is lost."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from dtjob.bad_input import BadInput
from dtjob.cli.convert.reading import CannotConvert, Finding
from dtjob.cli.convert.tfjob import convert, is_tfjob
from dtjob.manifests.manifest_yaml import printed
from dtjob.manifests.stream import Document, read_documents

_BY_HAND = " cannot be converted; the page 'From TrainJob, JobSet and Job' of the guides shows where each field goes"
_OTHER_KINDS = {
    **dict.fromkeys(("JobSet", "TrainJob", "Job"), _BY_HAND),
    "RayJob": " cannot be converted; the page 'Comparison' of the guides says when a RayJob is the better one",
    "Template": " is filled in first: oc process -f FILE --local -o yaml | dtjob convert -",
}
"""What helps the user of another kind."""
_OF_HELM = "; a template of helm is rendered first: helm template CHART > FILE"


class Answer(NamedTuple):
    """What the command prints. `code`: 0 if nothing of meaning is lost, 1 if there are warnings."""

    output: str
    lines: list[str]
    code: int


def answer(files: Sequence[Path], *, program: bool, as_json: bool) -> Answer:
    """Convert every TFJob in these files. Raises BadInput if one cannot be converted, and then prints none."""
    found = read_documents(files)
    if not any(is_tfjob(one.content) for one in found):
        advised = [one for one in found if _kind(one) in _OTHER_KINDS]
        if advised:
            raise BadInput(*(f"{one.where}: {_kind(one)}{_OTHER_KINDS[_kind(one)]}" for one in advised))
        names = ", ".join("standard input" if str(file) == "-" else str(file) for file in files)
        raise BadInput(f"{names}: has no TFJob of kubeflow.org/v1; give a manifest with one")
    made, findings, lines, wrong = list[Any](), list[Finding](), list[str](), list[str]()
    for document in found:
        if not is_tfjob(document.content):
            made.append(document.content)
            advice = _OTHER_KINDS.get(_kind(document), " is no TFJob")
            lines.append(f"note: {document.where}: {_kind(document)}{advice}; it stays as it is")
            continue
        try:
            result = convert(document.content, program=program)
        except CannotConvert as error:
            helm = _OF_HELM if "{{" in str(error) else ""
            wrong.append(f"{_where(document)}: cannot be converted: {error}{helm}")
            continue
        made.append(result.manifest)
        findings += result.findings
        lines += [finding.said_of(_where(document)) for finding in result.findings]
    if wrong:
        raise BadInput(*wrong)
    return Answer(printed(made, as_json=as_json), lines, int(any(finding.warning for finding in findings)))


def _where(document: Document) -> str:
    metadata = document.content.get("metadata")
    name = metadata.get("name") or metadata.get("generateName") if isinstance(metadata, dict) else None
    return f"{document.where}: {name}" if name else document.where


def _kind(document: Document) -> str:
    content = document.content
    return str(content.get("kind", "a document")) if isinstance(content, dict) else "a document"
