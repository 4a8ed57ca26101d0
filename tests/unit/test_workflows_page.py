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
from dtjob.crd.definition import crd, status_schema
from tests.unit.test_tutorials import blocks, is_whole
from tests.unit.workflows_page import (
    PAGE,
    TUTORIAL,
    expressions,
    objects,
    program_of_the_tutorials_night,
    templates,
    trial_template,
)

ROOT = Path(__file__).parents[2]
(SCRIPT,) = [block for block in blocks(TUTORIAL) if is_whole(block)]
PROGRAMS = {
    PAGE: ("examples/digits.py", (ROOT / "examples" / "digits.py").read_text()),
    TUTORIAL: ("train.py", SCRIPT),
}
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


@both
@pytest.mark.parametrize("created", [nights_job, trials_job])
def test_each_run_has_a_directory_of_its_own(page: Path, created: Created) -> None:
    job = created(page)
    assert job["spec"]["checkpoint"]["storage"]["subPath"] in ("nightly-1700000000", "search-abcd1234")


def test_the_workflow_may_create_the_job_and_read_it() -> None:
    kinds = objects()
    rules = [rule for rule in kinds["Role"]["rules"] if rule["apiGroups"] == [crd()["spec"]["group"]]]
    assert [rule["resources"] for rule in rules] == [[crd()["spec"]["names"]["plural"]]]
    assert set(rules[0]["verbs"]) == {"create", "get"}
    account = kinds["ServiceAccount"]["metadata"]["name"]
    assert kinds["RoleBinding"]["subjects"] == [{"kind": "ServiceAccount", "name": account}]
    assert kinds["RoleBinding"]["roleRef"]["name"] == kinds["Role"]["metadata"]["name"]
    assert kinds["CronWorkflow"]["spec"]["workflowSpec"]["serviceAccountName"] == account


def test_argo_finds_the_resource_of_the_kind() -> None:
    """It makes the plural of the kind in lower case, as kubectl's namer does, to read the object."""
    names = crd()["spec"]["names"]
    assert names["plural"] == names["kind"].lower() + "s"


def test_the_outputs_of_the_workflow_are_fields_of_the_status() -> None:
    for output in templates()["train"]["outputs"]["parameters"]:
        schema: dict[str, Any] = {"properties": {"status": status_schema()}}
        for name in output["valueFrom"]["jsonPath"].strip("{}.").split("."):
            schema = schema["properties"][name]


def test_the_steps_name_templates_and_outputs_that_are_there() -> None:
    steps = [step for group in templates()["night"]["steps"] for step in group]
    assert {step["template"] for step in steps} <= set(templates())
    outputs = {
        f"steps.{step['name']}.outputs.parameters.{output['name']}"
        for step in steps
        for output in templates()[step["template"]].get("outputs", {}).get("parameters", [])
    }
    inputs = {f"inputs.parameters.{one['name']}" for one in templates()["show"]["inputs"]["parameters"]}
    named = set(re.findall(r"\{\{(.*?)\}\}", PAGE.read_text()))
    assert named == outputs | inputs | set(ARGO_NAMES)


@both
def test_the_experiment_searches_its_own_parameters(page: Path) -> None:
    spec = objects(page)["Experiment"]["spec"]
    references = {one["reference"] for one in spec["trialTemplate"]["trialParameters"]}
    assert references == {one["name"] for one in spec["parameters"]} | {"${trialSpec.Name}"}
    trial = yaml.safe_dump(spec["trialTemplate"]["trialSpec"])
    used = set(re.findall(r"\$\{trialParameters\.(\w+)\}", trial))
    assert used == {one["name"] for one in spec["trialTemplate"]["trialParameters"]}


@both
def test_katib_finds_the_metric_in_what_the_program_prints(page: Path) -> None:
    spec = objects(page)["Experiment"]["spec"]
    (line,) = re.findall(r'print\(f"(.*?)\{', PROGRAMS[page][1])
    (pattern,) = spec["metricsCollectorSpec"]["source"]["filter"]["metricsFormat"]
    found = re.findall(pattern, f"{line}0.9833")
    assert found == [(spec["objective"]["objectiveMetricName"], "0.9833")]
    if page == PAGE:
        assert f"`{line}0.9833`" in page.read_text()


def test_katib_is_given_the_kind_as_it_names_kinds() -> None:
    definition = crd()["spec"]
    (version,) = [one["name"] for one in definition["versions"]]
    assert f"`{definition['names']['kind']}.{version}.{definition['group']}`" in PAGE.read_text()


def test_the_tutorial_has_the_conditions_that_the_library_of_katib_evaluates() -> None:
    for name in ("successCondition", "failureCondition"):
        assert trial_template(TUTORIAL)[name] == expressions("Katib")[name]
