# SPDX-License-Identifier: Apache-2.0
"""The workflow and the experiment in docs/jobs/workflows.md: their jobs are valid, and what they name is there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from dtjob.crd.answers.problems import problems
from dtjob.crd.definition import crd
from dtjob.crd.status_schema import status_schema
from tests.unit.workflows_page import PAGE, objects, templates, trial_template

ROOT = Path(__file__).parents[2]
DIGITS = (ROOT / "examples" / "digits.py").read_text()
ARGO_NAMES = {"workflow.name": "nightly-1700000000"}


def filled(text: str, names: dict[str, str], pattern: str) -> Any:
    """The YAML with a value for each parameter; a name that nobody defines is an error."""
    return yaml.safe_load(re.sub(pattern, lambda found: names[found[1]], text))


def nights_job() -> dict[str, Any]:
    """The job that Argo creates."""
    job: dict[str, Any] = filled(templates()["train"]["resource"]["manifest"], ARGO_NAMES, r"\{\{(.*?)\}\}")
    assert "name" not in job["metadata"]
    job["metadata"]["name"] = job["metadata"].pop("generateName") + "abcde"
    return job


def trials_job(batch: str = "32") -> dict[str, Any]:
    """The job that Katib creates for a trial."""
    template = trial_template()
    values = {"batch": batch, "${trialSpec.Name}": "search-abcd1234"}
    names = {f"trialParameters.{one['name']}": values[one["reference"]] for one in template["trialParameters"]}
    job: dict[str, Any] = filled(yaml.safe_dump(template["trialSpec"]), names, r"\$\{(.*?)\}")
    assert "metadata" not in job, "Katib refuses a trialSpec with a name or a namespace"
    return {**job, "metadata": {"name": "search-abcd1234"}}


@pytest.mark.parametrize("job", [nights_job(), trials_job()], ids=["Argo", "Katib"])
def test_a_job_of_the_page_is_valid_and_its_program_takes_its_arguments(job: dict[str, Any]) -> None:
    assert problems(job) == []
    program = job["spec"]["program"]
    assert program["entrypoint"] == "examples/digits.py"
    for argument in program["args"]:
        assert f'"{argument.split("=")[0]}"' in DIGITS


@pytest.mark.parametrize("job", [nights_job(), trials_job()], ids=["Argo", "Katib"])
def test_each_run_has_a_directory_of_its_own(job: dict[str, Any]) -> None:
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
    page = PAGE.read_text()
    assert set(re.findall(r"\{\{(.*?)\}\}", page)) == outputs | inputs | set(ARGO_NAMES)


def test_the_experiment_searches_its_own_parameters() -> None:
    spec = objects()["Experiment"]["spec"]
    references = {one["reference"] for one in spec["trialTemplate"]["trialParameters"]}
    assert references == {one["name"] for one in spec["parameters"]} | {"${trialSpec.Name}"}
    trial = yaml.safe_dump(spec["trialTemplate"]["trialSpec"])
    used = set(re.findall(r"\$\{trialParameters\.(\w+)\}", trial))
    assert used == {one["name"] for one in spec["trialTemplate"]["trialParameters"]}


def test_katib_finds_the_metric_in_what_the_program_prints() -> None:
    spec = objects()["Experiment"]["spec"]
    (line,) = re.findall(r'print\(f"(.*?)\{', DIGITS)
    (pattern,) = spec["metricsCollectorSpec"]["source"]["filter"]["metricsFormat"]
    found = re.findall(pattern, f"{line}0.9833")
    assert found == [(spec["objective"]["objectiveMetricName"], "0.9833")]
    assert f"`{line}0.9833`" in PAGE.read_text()


def test_katib_is_given_the_kind_as_it_names_kinds() -> None:
    definition = crd()["spec"]
    (version,) = [one["name"] for one in definition["versions"]]
    assert f"`{definition['names']['kind']}.{version}.{definition['group']}`" in PAGE.read_text()
