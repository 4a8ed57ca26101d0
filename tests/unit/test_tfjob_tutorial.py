# SPDX-License-Identifier: Apache-2.0
"""docs/tutorials/convert-a-tfjob.md: what its commands print is what the page says that they print."""

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from dtjob.cli.main import app
from tests.unit.page_commands import ROOT, marked

PAGE = ROOT / "docs" / "tutorials" / "convert-a-tfjob.md"


def run(folder: Path, *words: str) -> tuple[int, str, str]:
    """The command in a folder with the page's files: exit code, output, and what standard error has."""
    for name, text in marked(PAGE, "file: ").items():
        (folder / name).write_text(text)
    done = CliRunner().invoke(app(), list(words))
    return done.exit_code, done.stdout, done.stderr


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of its own, which is the working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(("option", "code"), [((), 0), (("--program",), 1)])
def test_convert_prints_its_notes(here: Path, option: tuple[str, ...], code: int) -> None:
    ended, _, said = run(here, "convert", *option, "tfjob.yaml")
    assert (ended, said) == (code, marked(PAGE)[" ".join(("convert", *option))])
    assert f"The exit code is {code}" in PAGE.read_text()


def test_the_job_is_the_converted_one_with_the_three_changes(here: Path) -> None:
    converted = yaml.safe_load(run(here, "convert", "--program", "tfjob.yaml")[1])
    job = yaml.safe_load(marked(PAGE, "file: ")["job.yaml"])
    assert "volumeClaimTemplate" in job["spec"]["checkpoint"]["storage"]
    wanted: dict[str, Any] = copy.deepcopy(converted)
    wanted["spec"]["checkpoint"] = job["spec"]["checkpoint"]
    template = wanted["spec"]["replicaSpecs"]["worker"].pop("template")["spec"]
    assert set(template) == {"securityContext", "containers"}
    assert [set(one) for one in template["containers"]] == [{"name", "securityContext"}]
    assert wanted["spec"].pop("cleanPodPolicy") == "None"
    assert job == wanted


def test_validate_and_explain_print_what_the_page_has(here: Path) -> None:
    assert run(here, "validate", "job.yaml")[:2] == (0, marked(PAGE)["validate"])
    code, said, _ = run(here, "explain", "job.yaml")
    assert code == 0
    assert marked(PAGE)["explain"] in said
