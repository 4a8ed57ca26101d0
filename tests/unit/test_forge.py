# SPDX-License-Identifier: Apache-2.0
"""The workflows of a forge (.github/workflows): they are YAML, and what they run is there."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / ".github").rglob("*.y*ml"))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
RELEASE = ROOT / ".github" / "workflows" / "release.yml"
TARGETS = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.M))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_each_file_is_yaml(file: Path) -> None:
    assert yaml.safe_load(file.read_text())


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_each_make_target_exists(file: Path) -> None:
    wanted = [target for job in _jobs(file) for step in job["steps"] for target in _targets(step, job)]
    assert wanted
    assert set(wanted) <= TARGETS


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_each_job_has_a_time_limit_and_each_action_a_version(file: Path) -> None:
    for job in _jobs(file):
        assert job["timeout-minutes"] > 0
        assert all(re.fullmatch(r"[\w./-]+@v\d+", step["uses"]) for step in job["steps"] if "uses" in step)


def _jobs(file: Path) -> list[dict[str, Any]]:
    return list(yaml.safe_load(file.read_text())["jobs"].values())


def _targets(step: dict[str, Any], job: dict[str, Any]) -> list[str]:
    """The targets that `make` is called with in this step, those of a matrix too."""
    matrix: dict[str, list[str]] = job.get("strategy", {}).get("matrix", {})
    found: list[str] = []
    for words in re.findall(r"^\s*(?:sudo .* )?make (.+?)(?:&&|$)", step.get("run", ""), re.M):
        name = re.fullmatch(r"\$\{\{ matrix\.(\w+) \}\}", words.strip())
        found += matrix[name[1]] if name else [word for word in words.split() if "=" not in word]
    return found


def test_the_images_of_a_release_say_their_version_and_commit() -> None:
    (run,) = (step["run"] for job in _jobs(RELEASE) for step in job["steps"] if "docker build " in step.get("run", ""))
    for name in ("VERSION", "REVISION"):
        assert re.search(rf'--build-arg "{name}=\$', run)
    builds = re.findall(r"docker build .*", run)
    assert len(builds) == len(["operator", "trainer"])
    assert all('"${labels[@]}"' in build for build in builds)
