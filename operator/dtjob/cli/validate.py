# SPDX-License-Identifier: Apache-2.0
"""`dtjob validate`: checks manifests as the API server would, without one."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from dtjob.api.job import KIND
from dtjob.bad_input import BadInput
from dtjob.crd.answers.hints import of_managed_by
from dtjob.crd.answers.problems import to_job
from dtjob.manifests.generated_name import hint, named
from dtjob.manifests.stream import read_documents, read_file
from dtjob.manifests.warnings import warnings_of
from dtjob.objects.defaults import NO_DEFAULTS, lacks_image


@dataclass(frozen=True)
class Verdict:
    """What is to be said of one job."""

    where: str
    name: str = ""
    problems: list[dict[str, str]] = field(default_factory=list)
    """Field and message of each thing that an API server would refuse."""
    hints: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    """What the job may not be meant to do."""

    @property
    def line(self) -> str:
        """The sentence about a job that is right."""
        return "; ".join([f"{self.where}: {self.name} is valid", *self.hints])

    @property
    def wrong(self) -> list[str]:
        """A sentence for each thing that is wrong."""
        return [f"{self.where}: {': '.join(filter(None, (one['field'], one['message'])))}" for one in self.problems]


def verdicts(files: Iterable[Path]) -> Iterator[Verdict]:
    """One for each job that is right; after the last, raises BadInput with all that is wrong in the others."""
    wrong: list[str] = []
    for one in _all(files):
        if isinstance(one, BadInput):
            wrong += one.lines
        elif one.problems:
            wrong += one.wrong
        else:
            yield one
    if wrong:
        raise BadInput(*wrong)


def as_json(files: Iterable[Path]) -> tuple[str, bool]:
    """Every verdict as JSON, and whether all is right."""
    found = [_of_lines(one.lines) if isinstance(one, BadInput) else one for one in _all(files)]
    listed: list[dict[str, Any]] = [{"valid": not one.problems, **asdict(one)} for one in found]
    return json.dumps(listed, indent=2) + "\n", all(one["valid"] for one in listed)


def _of_lines(lines: tuple[str, ...]) -> Verdict:
    """A verdict about a file that cannot be read."""
    return Verdict("", problems=[{"field": "", "message": line} for line in lines])


def _all(files: Iterable[Path]) -> Iterator[Verdict | BadInput]:
    for file in files:
        try:
            found = read_documents([file]) if file.is_dir() else read_file(file)
            if not found:
                raise BadInput(f"{file}: is empty; give one {KIND}")
            jobs = [one for one in found if isinstance(one.content, dict) and one.content.get("kind") == KIND]
            if not jobs and len(found) > 1:
                raise BadInput(f"{file}: holds {len(found)} documents, 0 of them a {KIND}; give a file with one")
        except BadInput as error:
            yield error
        else:
            yield from (verdict(one.content, one.where) for one in jobs or found)


def verdict(manifest: Any, where: str) -> Verdict:
    """What is to be said of this manifest."""
    with_name, found = named(manifest)
    if found:
        return Verdict(where, problems=[{"field": one.field, "message": one.message} for one in found])
    job = to_job(with_name)
    needs = "it leaves out spec.image, so the operator must have a default image"
    said = [needs] if lacks_image(job, NO_DEFAULTS) else []
    said += [text for text in (of_managed_by(job.spec.managed_by), hint(job.metadata)) if text]
    return Verdict(where, job.metadata.name, [], said, warnings_of(job, manifest))
