"""`dtjob validate`: checks manifests as the API server would, without one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from dtjob.cli.bad_input import BadInput
from dtjob.cli.generated_name import hint
from dtjob.cli.job_file import read_job
from dtjob.crd.answers.hints import of_managed_by
from dtjob.objects.defaults import NO_DEFAULTS, lacks_image


def verdicts(files: Iterable[Path]) -> Iterator[str]:
    """A sentence for each file that is right; after the last, raises BadInput with all that is wrong in the others."""
    wrong: list[str] = []
    for file in files:
        try:
            job = read_job(file)
        except BadInput as error:
            wrong += error.lines
        else:
            without = lacks_image(job, NO_DEFAULTS)
            needs = "; it leaves out spec.image, so the operator must have a default image" if without else ""
            hints = "".join(f"; {said}" for said in (of_managed_by(job.spec.managed_by), hint(job.metadata)) if said)
            yield f"{file}: {job.metadata.name} is valid{needs}{hints}"
    if wrong:
        raise BadInput(*wrong)
