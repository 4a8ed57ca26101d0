# SPDX-License-Identifier: Apache-2.0
"""`dtjob validate`: checks manifests as the API server would, without one."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from dtjob.api.job import KIND
from dtjob.bad_input import BadInput
from dtjob.crd.answers.field_errors import Problem
from dtjob.crd.answers.hints import of_managed_by
from dtjob.crd.answers.problems import to_job
from dtjob.manifests.job_file import hint, named
from dtjob.manifests.manifest_yaml import printed
from dtjob.manifests.stream import read_documents, read_file
from dtjob.manifests.warnings import warnings_of
from dtjob.objects.defaults import NO_DEFAULTS, lacks_image


@dataclass(frozen=True)
class Verdict:
    """What is to be said of one job, or of a file that cannot be read."""

    where: str
    name: str = ""
    problems: list[Problem] = field(default_factory=list)
    """What an API server would refuse."""
    hints: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    """What the job may not be meant to do."""

    @property
    def line(self) -> str:
        """The sentence about a job that is right."""
        return "; ".join([f"{self.where}: {self.name} is valid", *self.hints])


def verdicts(files: Iterable[Path]) -> Iterator[Verdict]:
    """One for each job that is right; after the last, raises BadInput with all that is wrong in the others."""
    wrong: list[str] = []
    for one in _all(files):
        if one.problems:
            wrong += (f"{one.where}: {problem}" if one.where else str(problem) for problem in one.problems)
        else:
            yield one
    if wrong:
        raise BadInput(*wrong)


def as_json(files: Iterable[Path]) -> tuple[str, bool]:
    """Every verdict as JSON, and whether all is right."""
    listed: list[dict[str, Any]] = [{"valid": not one.problems, **asdict(one)} for one in _all(files)]
    return printed([listed], as_json=True), all(one["valid"] for one in listed)


def _all(files: Iterable[Path]) -> Iterator[Verdict]:
    for file in files:
        try:
            found = read_documents([file]) if file.is_dir() else read_file(file)
            if not found:
                raise BadInput(f"{file}: is empty; give one {KIND}")
            jobs = [one for one in found if isinstance(one.content, dict) and one.content.get("kind") == KIND]
            if not jobs and len(found) > 1:
                raise BadInput(f"{file}: holds {len(found)} documents, 0 of them a {KIND}; give a file with one")
        except BadInput as error:
            yield Verdict("", problems=[Problem("", line) for line in error.lines])
        else:
            yield from (verdict(one.content, one.where) for one in jobs or found)


def verdict(manifest: Any, where: str) -> Verdict:
    """What is to be said of this manifest."""
    with_name, found = named(manifest)
    if found:
        return Verdict(where, problems=found)
    job = to_job(with_name)
    needs = "it leaves out spec.image, so the operator must have a default image"
    said = [needs] if lacks_image(job, NO_DEFAULTS) else []
    said += [text for text in (of_managed_by(job.spec.managed_by), hint(job.metadata)) if text]
    return Verdict(where, job.metadata.name, [], said, warnings_of(job, manifest))
