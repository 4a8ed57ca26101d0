"""`dtjob validate`: checks manifests as the API server would, without one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from dtjob.cli.bad_input import BadInput
from dtjob.cli.job_file import read_job
from dtjob.crd.other_words import of_managed_by


def verdicts(files: Iterable[Path]) -> Iterator[str]:
    """A sentence for each file that is right; after the last, raises BadInput with all that is wrong in the others."""
    wrong: list[str] = []
    for file in files:
        try:
            job = read_job(file)
        except BadInput as error:
            wrong += error.lines
        else:
            needs = "" if job.spec.image else "; it leaves out spec.image, so the operator must have a default image"
            hint = of_managed_by(job.spec.managed_by)
            yield f"{file}: {job.metadata.name} is valid{needs}{hint and f'; {hint}'}"
    if wrong:
        raise BadInput(*wrong)
