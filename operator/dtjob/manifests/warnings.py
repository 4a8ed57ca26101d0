# SPDX-License-Identifier: Apache-2.0
"""What a manifest without problems may not be meant to do."""

from collections.abc import Iterator
from typing import Any

from dtjob.api.job import Job
from dtjob.crd.answers.problems import useless_fields
from dtjob.crd.rule import values_at
from dtjob.objects.defaults import NO_DEFAULTS
from dtjob.objects.pod.accelerators import unequal_gpus
from dtjob.objects.pod.storage import keeping, mounting_problem, nothing_saved

_MEANT_EMPTY = {
    "spec": ("tensorBoard",),
    "spec.replicaSpecs": ("chief", "evaluator"),
    "spec.scheduling": ("gang",),
}
"""Blocks that ask for something without a field, by the block around them."""


def warnings_of(job: Job, manifest: Any) -> list[str]:
    """What the job may not be meant to do in a cluster. `manifest`: what the job was made of."""
    kept = keeping(job, NO_DEFAULTS)
    warnings = (nothing_saved(job), kept.message if kept else "", mounting_problem(job), unequal_gpus(job))
    return [*said_in_vain(manifest), *(warning for warning in warnings if warning)]


def said_in_vain(manifest: Any) -> list[str]:
    """The fields of a manifest that have no effect, each with what to write instead."""
    return [*_empty_blocks(manifest), *map(str, useless_fields(manifest))]


def _empty_blocks(manifest: Any) -> Iterator[str]:
    """A warning for each block with nothing after its colon: an API server drops it, and {} would mean something."""
    for at, names in _MEANT_EMPTY.items():
        for path, block in values_at(manifest, at):
            for name in names:
                if name in block and block[name] is None:
                    yield f"{path}.{name} is empty and counts as absent; write `{name}: {{}}`, or remove {name}"
