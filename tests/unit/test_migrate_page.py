# SPDX-License-Identifier: Apache-2.0
"""docs/migrate/trainjob-jobset-job.md: each dtjob has the tasks of the job before it, and the tables name fields."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from dtjob.crd.answers.problems import problems, to_job
from dtjob.crd.schema import spec_schema
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
POD_TEMPLATES = ("template", "replicatedJobs.template.spec.template")
"""Pod templates of Job and JobSet: the page names them as a whole."""
KEPT = ("activeDeadlineSeconds", "ttlSecondsAfterFinished", "suspend")


def rows(heading: str) -> list[list[str]]:
    """The cells of the tables of a section, without their heads."""
    section = PAGE.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def leaves(value: Any, path: str = "") -> Iterator[str]:
    """Paths of the fields of a spec; entries of lists have the path of the list."""
    if isinstance(value, dict) and path not in POD_TEMPLATES:
        for name, item in value.items():
            yield from leaves(item, f"{path}.{name}".removeprefix("."))
    elif isinstance(value, list) and all(isinstance(one, dict) for one in value):
        for one in value:
            yield from leaves(one, path)
    else:
        yield path


def image(value: Any) -> str:
    """The one image that a manifest names."""
    (found,) = set(re.findall(r"registry\.example/([\w-]+):", yaml.safe_dump(value)))
    return found


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
    world = World(whole)
    try:
        world.run(1)
        assert set(world.pods) == {f"{name}-{task}-0" for task in tasks}
    finally:
        world.close()
    assert len(tasks) == pods


@pytest.mark.parametrize("name", AFTER)
def test_a_dtjob_keeps_what_the_job_before_it_says(name: str) -> None:
    before, after = BEFORE[name][1]["spec"], AFTER[name][1]["spec"]
    for field in KEPT:
        assert before.get(field) == after.get(field)
    assert image(after) in (image(before), f"{image(before)}-on-dtjob")


@pytest.mark.parametrize(("name", "kind"), [("mnist", "TrainJob"), ("clicks", "JobSet"), ("train", "Job")])
def test_the_table_has_every_field_of_the_job(name: str, kind: str) -> None:
    job = BEFORE[name][1]
    assert job["kind"] == kind
    said = [span for row in rows(f"From {kind}") for span in re.findall(r"`([\w.]+)`", row[0])]
    fields = set(leaves(job["spec"]))
    assert len(fields) > 4
    assert {one for one in fields if not any(one == name or one.startswith(f"{name}.") for name in said)} == set()


@pytest.mark.parametrize("kind", ["TrainJob", "JobSet", "Job"])
def test_every_field_that_a_table_tells_to_write_is_there(kind: str) -> None:
    named = 0
    for theirs, ours in rows(f"From {kind}"):
        first = re.match(r"`([\w.*]+)`", ours)
        if first is None:
            assert ours.startswith(("none", "dtjob's")), theirs
            continue
        part = spec_schema()
        for name in first[1].split("."):
            part = part["properties"]["worker" if name == "*" else name]
        named += 1
    assert named > 5
