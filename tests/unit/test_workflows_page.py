# SPDX-License-Identifier: Apache-2.0
"""The workflow and the experiment of docs/jobs/workflows.md and of docs/tutorials/search.md: their jobs are valid, and
what they name is there.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from dtjob.crd.answers.problems import problems
from dtjob.crd.definition import status_schema
from dtjob.objects import labels, topology
from tests.unit.operator import builders
from tests.unit.page_commands import ROOT
from tests.unit.test_page_programs import is_whole, programs
from tests.unit.workflows_page import (
    PAGE,
    TUTORIAL,
    expressions,
    objects,
    program_of_the_tutorials_night,
    templates,
    trial_template,
)

KATIB = expressions("Katib")
(SCRIPT,) = [block for block in programs(TUTORIAL) if is_whole(block)]
PROGRAMS = {PAGE: ("examples/digits.py", (ROOT / "examples" / "digits.py").read_text()), TUTORIAL: ("train.py", SCRIPT)}
"""The entrypoint of the jobs of each page, and its text."""
ARGO_NAMES = {"workflow.name": "nightly-1700000000"}
Created = Callable[[Path], dict[str, Any]]
both = pytest.mark.parametrize("page", PROGRAMS, ids=lambda page: page.stem)


def filled(text: str, names: dict[str, str], pattern: str) -> Any:
    """The YAML with a value for each parameter; a name that nobody defines is an error."""
    return yaml.safe_load(re.sub(pattern, lambda found: names[found[1]], text))


def nights_job(page: Path) -> dict[str, Any]:
    """The job that Argo creates. The tutorial gives it another program."""
    manifest = templates()["train"]["resource"]["manifest"]
    job: dict[str, Any] = filled(manifest, ARGO_NAMES, r"\{\{(.*?)\}\}")
    assert "name" not in job["metadata"]
    job["metadata"]["name"] = job["metadata"].pop("generateName") + "abcde"
    if page == TUTORIAL:
        job["spec"]["program"] = program_of_the_tutorials_night()
    return job


def trials_job(page: Path) -> dict[str, Any]:
    """The job that Katib creates for a trial."""
    template = trial_template(page)
    searched = {one["name"]: one["feasibleSpace"]["min"] for one in objects(page)["Experiment"]["spec"]["parameters"]}
    values = {**searched, "${trialSpec.Name}": "search-abcd1234"}
    names = {f"trialParameters.{one['name']}": values[one["reference"]] for one in template["trialParameters"]}
    job: dict[str, Any] = filled(yaml.safe_dump(template["trialSpec"]), names, r"\$\{(.*?)\}")
    assert "metadata" not in job, "Katib refuses a trialSpec with a name or a namespace"
    return {**job, "metadata": {"name": "search-abcd1234"}}


@both
@pytest.mark.parametrize("created", [nights_job, trials_job])
def test_a_job_of_the_page_is_valid_and_its_program_takes_its_arguments(page: Path, created: Created) -> None:
    job = created(page)
    assert problems(job) == []
    program, (entrypoint, text) = job["spec"]["program"], PROGRAMS[page]
    assert program["entrypoint"] == entrypoint
    for argument in program["args"]:
        assert f'"{argument.split("=")[0]}"' in text


def test_the_outputs_of_the_workflow_are_fields_of_the_status() -> None:
    for output in templates()["train"]["outputs"]["parameters"]:
        schema: dict[str, Any] = {"properties": {"status": status_schema()}}
        for name in output["valueFrom"]["jsonPath"].strip("{}.").split("."):
            schema = schema["properties"][name]


def test_katib_finds_the_chiefs_pod_and_its_container() -> None:
    pod = builders.pod(builders.job(), "chief-0")
    assert KATIB["primaryPodLabels"].items() <= labels.of(pod).items()
    assert KATIB["primaryContainerName"] in [one["name"] for one in pod["spec"]["containers"]]


def test_katib_finds_worker_0_where_there_is_no_chief() -> None:
    (text,) = re.findall(r"If a job has no chief, its primary pod is\s+`(\{.*?\})`", PAGE.read_text())
    job = builders.job(chief=False, program=False)
    matched = [
        task.id
        for task in topology.tasks(job)
        if yaml.safe_load(text).items() <= labels.of(builders.pod(job, task.id)).items()
    ]
    assert matched == ["worker-0"]
