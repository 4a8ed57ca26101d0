# SPDX-License-Identifier: Apache-2.0
"""docs/migrate/trainjob-jobset-job.md: each dtjob has the tasks of the job before it, and the tables name fields."""

from typing import Any

import pytest
import yaml

from dtjob.crd.answers.problems import problems, to_job
from tests.unit.operator import builders
from tests.unit.operator.simulation.operator import World
from tests.unit.page_commands import ROOT, documents, marked

PAGE = ROOT / "docs" / "migrate" / "trainjob-jobset-job.md"


def objects(mark: str) -> dict[str, tuple[str, Any]]:
    """The page's blocks with this mark, by their names: what they make, and their objects."""
    found = {tuple(comment.split(" makes ")): text for comment, text in marked(PAGE, mark).items()}
    return {name: (makes, yaml.safe_load(text)) for (name, makes), text in found.items()}


BEFORE, AFTER = objects("before: "), objects("dtjob: ")


def test_every_block_has_its_counterpart() -> None:
    assert list(BEFORE) == list(AFTER)
    assert 2 * len(BEFORE) == len(documents(PAGE))


@pytest.mark.parametrize("name", AFTER)
def test_a_dtjob_is_taken_and_makes_the_pods_of_the_job_before_it(name: str) -> None:
    makes, manifest = AFTER[name]
    tasks = makes.split()
    pods, before = BEFORE[name]
    assert manifest["metadata"]["name"] == before["metadata"]["name"] == name
    assert problems(manifest) == []
    whole = to_job(manifest)
    whole.metadata.uid, whole.metadata.resource_version, whole.metadata.generation = builders.JOB_UID, "1", 1
    with World(whole) as world:
        world.run(1)
        assert set(world.pods) == {f"{name}-{task}-0" for task in tasks}
    assert len(tasks) == int(pods)
