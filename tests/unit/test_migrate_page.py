# SPDX-License-Identifier: Apache-2.0
"""docs/migrate/trainjob-jobset-job.md: each dtjob has the tasks of the job before it, and the tables name fields."""

import re
from pathlib import Path

import pytest
import yaml

from dtjob.crd.answers.problems import problems, to_job
from tests.unit.operator import builders
from tests.unit.operator.simulation.operator import World

PAGE = (Path(__file__).parents[2] / "docs" / "migrate" / "trainjob-jobset-job.md").read_text()
BEFORE = {
    name: (int(pods), yaml.safe_load(block))
    for name, pods, block in re.findall(r"<!-- before: (\w+) makes (\d+) -->\n```yaml\n(.*?)```", PAGE, re.S)
}
AFTER = {
    name: (tasks.split(), yaml.safe_load(block))
    for name, tasks, block in re.findall(r"<!-- dtjob: (\w+) makes (.*?) -->\n```yaml\n(.*?)```", PAGE, re.S)
}


def test_every_block_has_its_counterpart() -> None:
    assert list(BEFORE) == list(AFTER)
    assert 2 * len(BEFORE) == PAGE.count("```yaml")


@pytest.mark.parametrize("name", AFTER)
def test_a_dtjob_is_taken_and_makes_the_pods_of_the_job_before_it(name: str) -> None:
    tasks, manifest = AFTER[name]
    pods, before = BEFORE[name]
    assert manifest["metadata"]["name"] == before["metadata"]["name"] == name
    assert problems(manifest) == []
    whole = to_job(manifest)
    whole.metadata.uid, whole.metadata.resource_version, whole.metadata.generation = builders.JOB_UID, "1", 1
    with World(whole) as world:
        world.run(1)
        assert set(world.pods) == {f"{name}-{task}-0" for task in tasks}
    assert len(tasks) == pods
