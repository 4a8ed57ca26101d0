# SPDX-License-Identifier: Apache-2.0
"""Every block of YAML in README.md and docs/ is a job or a part of one that an API server takes, or is of another kind.
`tests/cluster/test_page_manifests.py` shows the objects to a real API server.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from dtjob.api.job import API_VERSION, KIND
from dtjob.crd.answers.problems import problems
from dtjob.crd.definition import crd, status_schema
from dtjob.crd.schema import spec_schema
from tests.unit.page_commands import ROOT, documents

OWN_TEST = ("failure-rules.md", "failure-policies.md")
"""Their blocks are for a job with a ps and an evaluator: `test_failure_rules_page.py`."""
FIELDS = set(spec_schema()["properties"])
REST_OF_A_JOB = {
    "strategy": "MultiWorkerMirrored",
    "image": "dtjob-trainer:dev",
    "program": {"entrypoint": "train.py"},
    "replicaSpecs": {"chief": {}, "worker": {"replicas": 3}},
    "checkpoint": {"storage": {"volume": {"persistentVolumeClaim": {"claimName": "digits"}}}},
}


def jobs(page: Path) -> Iterator[dict[str, Any]]:
    """The page's jobs. A part of a spec is made a whole one."""
    for document in documents(page):
        if document.get("kind") == KIND:
            yield document
        elif (part := part_of_a_spec(document)) is not None:
            whole = {**REST_OF_A_JOB, **part}
            yield {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": "digits"}, "spec": whole}


def part_of_a_spec(document: dict[str, Any]) -> dict[str, Any] | None:
    """The fields of a spec where the document has these and nothing else."""
    part: dict[str, Any] = document["spec"] if set(document) == {"spec"} else document
    return part if set(part) <= FIELDS else None


def others(page: Path) -> Iterator[dict[str, Any]]:
    """The page's documents that are neither objects of a cluster nor parts of a spec."""
    yield from (one for one in documents(page) if "kind" not in one and part_of_a_spec(one) is None)


PAGES = [page for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))) if page.name not in OWN_TEST]
CASES = [(str(page.relative_to(ROOT)), index, job) for page in PAGES for index, job in enumerate(jobs(page))]


@pytest.mark.parametrize(("page", "index", "job"), CASES, ids=[f"{page}-{index}" for page, index, _ in CASES])
def test_a_job_of_a_page_is_taken(page: str, index: int, job: dict[str, Any]) -> None:
    assert problems(job) == []


def test_the_readme_and_the_pages_have_jobs() -> None:
    assert {"README.md", "docs/start/quickstart.md", "docs/jobs/elastic.md"} <= {page for page, _, _ in CASES}


def test_a_manifest_of_a_page_with_an_unknown_field_is_a_problem(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```yaml\nreplicaSpecs: {worker: {count: 2}}\n```\n")
    assert [bool(problems(job)) for job in jobs(page)] == [True]


def test_every_other_block_is_of_a_known_sort() -> None:
    """Of Kueue's configuration and a scheduler's profiles, `tests/integrations/` has the whole."""
    sorts = {key for page in PAGES for one in others(page) for key in one}
    assert sorts == {"status", "jobs", "metrics", "integrations", "multiKueue", "profiles"}


def test_parts_of_a_status_have_fields_of_the_status() -> None:
    found = [one["status"] for page in PAGES for one in others(page) if "status" in one]
    assert len(found) > 1
    for part in found:
        jsonschema.validate(part, closed(status_schema()))
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"goodput": {"steps": {"keep": 1}}}, closed(status_schema()))


def test_values_of_the_chart_are_allowed() -> None:
    schema = json.loads((ROOT / "helm" / "dtjob" / "values.schema.json").read_text())
    found = [one for page in PAGES for one in others(page) if set(one) <= set(schema["properties"])]
    kinds = {one["kind"]: one for one in documents(ROOT / "docs" / "operate" / "installing.md") if "kind" in one}
    found.append(kinds["Application"]["spec"]["source"]["helm"]["valuesObject"])
    found.append(kinds["HelmRelease"]["spec"]["values"])
    assert len(found) > 2
    for values in found:
        jsonschema.validate(values, {**schema, "required": []})


def test_kueue_is_given_the_kind_as_it_names_kinds() -> None:
    definition = crd()["spec"]
    (version,) = [one["name"] for one in definition["versions"]]
    text = "".join(yaml.safe_dump(one) for one in others(ROOT / "docs" / "jobs" / "kueue.md"))
    kind = f"{definition['names']['kind']}.{version}.{definition['group']}"
    assert text.count(kind) == text.count("externalFrameworks") > 0


def closed(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema without what must be there, and with no other fields than those that it names."""
    kept = {
        key: {name: closed(part) for name, part in value.items()} if key == "properties" else value
        for key, value in schema.items()
        if key != "required"
    }
    if "items" in kept:
        kept["items"] = closed(kept["items"])
    return {**kept, "additionalProperties": kept.get("additionalProperties", "properties" not in kept)}
