# SPDX-License-Identifier: Apache-2.0
"""Every manifest in examples/ is one that an API server takes, and has all that it names."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from dtjob.api.job import KIND
from dtjob.api.spec.strategy import Strategy
from dtjob.crd.answers.problems import problems
from tests.unit.page_commands import documents as page_documents

EXAMPLES = Path(__file__).parents[2] / "examples"
MANIFESTS = sorted(EXAMPLES.glob("*.yaml"))


def documents(file: Path) -> dict[str, dict[str, Any]]:
    """Kind to object; fails where one kind comes twice."""
    found = list(yaml.safe_load_all(file.read_text()))
    assert len({each["kind"] for each in found}) == len(found)
    return {each["kind"]: each for each in found}


@pytest.mark.parametrize("file", MANIFESTS, ids=lambda file: file.name)
def test_each_example_is_accepted_as_one_document_with_its_claim(file: Path) -> None:
    (job,) = documents(file).values()
    assert problems(job) == []
    assert set(job["spec"]["checkpoint"]["storage"]) <= {"volumeClaimTemplate", "uri"}
    assert file.stem.replace("_", "-") == job["metadata"]["name"]


def test_every_program_has_a_manifest_and_the_digits_one_of_each_strategy() -> None:
    programs: dict[str, set[str]] = {}
    for file in MANIFESTS:
        spec = documents(file)["DistributedTrainingJob"]["spec"]
        if "program" in spec:
            programs.setdefault(spec["program"]["entrypoint"], set()).add(spec["strategy"])
    assert {f"examples/{file.name}" for file in EXAMPLES.glob("*.py")} == {*programs, "examples/plain.py"}
    assert programs["examples/digits.py"] == {strategy.value for strategy in Strategy}


def test_the_page_of_data_and_secrets_has_its_manifests_and_pieces_of_scripts() -> None:
    page = EXAMPLES.parent / "docs" / "jobs" / "data-and-secrets.md"
    jobs = [one for one in page_documents(page) if one.get("kind") == KIND]
    names = ["secret", "data-claim", "bucket", "gpus", "openshift", "tracking"]
    assert jobs == [documents(EXAMPLES / f"{name}.yaml")[KIND] for name in names]
    (piece,) = re.findall(r"^```python\n(.*?)^```", page.read_text(), re.M | re.S)
    assert piece in (EXAMPLES / "tracking.py").read_text()
