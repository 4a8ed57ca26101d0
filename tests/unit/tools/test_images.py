# SPDX-License-Identifier: Apache-2.0
"""What holds of the Dockerfiles and their builder without a build; builds are in tests/e2e/test_images.py."""

import fnmatch
import os
import re
from pathlib import Path

import pytest

from dtjob.api.spec.checkpoint import CheckpointStorage
from tools import debian_base, images


def instructions(name: str) -> list[tuple[str, str]]:
    """The Dockerfile's instructions with their arguments, continued lines joined and comments left out."""
    text = (images.ROOT / images.IMAGES[name].dockerfile).read_text()
    lines = [line for line in text.splitlines() if line[:1] != "#"]
    joined = re.sub(r"\\\n\s*", " ", "\n".join(lines))
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in joined.splitlines()) if word]


def ignored(path: str) -> bool:
    """Whether .dockerignore keeps this file out: as Docker reads it, the last pattern that matches decides."""
    answer = False
    for line in (images.ROOT / ".dockerignore").read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        pattern = line.removeprefix("!")
        names = path.split("/")
        above = ["/".join(names[: end + 1]) for end in range(len(names))]
        anywhere = pattern.removeprefix("**/")
        if any(fnmatch.fnmatchcase(one, pattern) for one in above) or (
            anywhere != pattern and any(fnmatch.fnmatchcase(name, anywhere) for name in names)
        ):
            answer = not line.startswith("!")
    return answer


@pytest.mark.parametrize("name", images.IMAGES)
def test_base_is_an_argument_and_every_stage_starts_from_it(name: str) -> None:
    found = instructions(name)
    assert found[0][0] == "ARG"
    base = found[0][1].removeprefix("BASE=")
    assert "/" not in base, "a registry is the user's configuration"
    assert {rest.split()[0] for word, rest in found if word == "FROM"} == {"${BASE}"}


@pytest.mark.parametrize("name", images.IMAGES)
def test_nothing_is_fetched_but_by_pip(name: str) -> None:
    assert not [rest for word, rest in instructions(name) if word == "ADD" or re.search(r"https?://|curl|wget", rest)]


@pytest.mark.parametrize("name", images.IMAGES)
def test_pip_is_held_to_the_constraints(name: str) -> None:
    runs = [rest for word, rest in instructions(name) if word == "RUN" and "install" in rest]
    assert runs
    assert all("-c constraints.txt" in rest or "--no-index" in rest for rest in runs)


@pytest.mark.parametrize("name", images.IMAGES)
def test_secrets_are_mounted_where_the_image_has_nothing(name: str) -> None:
    """buildah removes the file that a secret was mounted over, so it must be none of the base's files."""
    runs = [rest for word, rest in instructions(name) if word == "RUN" and "type=secret" in rest]
    assert runs
    assert not any("target=" in rest for rest in runs)


@pytest.mark.parametrize("name", images.IMAGES)
def test_user_is_a_number_that_is_not_roots(name: str) -> None:
    """The kubelet can tell that a number is not root, and refuses a name under runAsNonRoot."""
    assert [rest for word, rest in instructions(name) if word == "USER"] == ["1000:1000"]


def test_images_start_what_the_manifests_expect() -> None:
    operator, trainer = dict(instructions("operator")), dict(instructions("trainer"))
    assert (operator["ENTRYPOINT"], operator["CMD"]) == ('["dtjob"]', '["operator"]')
    assert "ENTRYPOINT" not in trainer
    assert trainer["WORKDIR"] == "/workspace"


def test_every_task_may_save_where_the_chief_mounts_the_volume_of_checkpoints() -> None:
    """A script calls `model.save` in all tasks, and the volume is in the chief's pod alone."""
    made = [rest.split()[3:] for word, rest in instructions("trainer") if rest.startswith("mkdir -m 1777 ")]
    assert made == [["/workspace", CheckpointStorage.model_fields["mount_path"].default]]


@pytest.mark.parametrize(
    "path",
    [".git/config", ".venv/bin/python", ".dtjob/run/log", "tests/unit/x.py", "operator/dtjob/__pycache__/x.pyc", ".env",
     "examples/.dtjob/run/log", "examples/.env", "operator/dtjob.egg-info/PKG-INFO", "kubeconfig"],
)  # fmt: skip
def test_files_that_are_no_source_stay_out_of_the_build(path: str) -> None:
    assert ignored(path)


@pytest.mark.parametrize(
    "path",
    ["operator/dtjob/plan/failure/restart.py", "trainer_image/dtjob_trainer/loops/fit.py", "pyproject.toml",
     "trainer_image/pyproject.toml", "examples/digits.py", "examples/digits.npz", "constraints.txt", "README.md",
     "LICENSE"],
)  # fmt: skip
def test_files_that_the_dockerfiles_copy_exist(path: str) -> None:
    assert not ignored(path)
    assert (images.ROOT / path).is_file()


def test_the_base_keeps_licences_and_nothing_of_the_machine(tmp_path: Path) -> None:
    kept = ["usr/share/doc/bash/copyright", "etc/ssl/certs/ca-certificates.crt", "usr/bin/python3"]
    gone = ["etc/resolv.conf", "etc/hostname", "etc/apt/sources.list", "var/cache/apt/archives/x.deb",
            "usr/share/doc/bash/README", "var/lib/apt/lists/x", "var/log/bootstrap.log"]  # fmt: skip
    for name in [*kept, *gone]:
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x")
    debian_base.clean(tmp_path)
    assert [name for name in [*kept, *gone] if (tmp_path / name).exists()] == kept


@pytest.fixture
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Docker that writes down how it is called, has one base by debootstrap, and no image that a registry has."""
    program = tmp_path / "bin" / "docker"
    program.parent.mkdir()
    script = (
        'case "$1" in image | pull) exit 1 ;; images) echo here ;; inspect) echo id ;; save) umask 077; : >"$3" ;; esac'
    )
    program.write_text(f'#!/bin/sh\necho "$@" >>{tmp_path}/calls\n{script}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("DTJOB_IMAGE_BASE", raising=False)
    return program


@pytest.mark.parametrize(
    ("has_registry", "variable", "base"),
    [(False, "", debian_base.reference()), (True, "", None), (False, "ours:1", "ours:1")],
)
def test_docker_builds_on_the_named_base_or_one_by_debootstrap_where_no_registry_has_the_dockerfiles(
    docker: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_registry: bool, variable: str, base: str | None
) -> None:
    if has_registry:
        docker.write_text(docker.read_text().replace("image | pull) exit 1", "image | pull) echo yes"))
    if variable:
        monkeypatch.setenv("DTJOB_IMAGE_BASE", variable)
    images.build(["operator"], say=lambda line: None)
    calls = (tmp_path / "calls").read_text()
    assert re.findall("--build-arg BASE=([^ ]+) ", calls) == ([base] if base else [])
    assert (f"pull --quiet {images.IMAGES['operator'].base}\n" in calls) is (base == debian_base.reference())


def test_everybody_may_read_an_archive(docker: Path) -> None:
    """Docker's own have mode 0600."""
    built = images.build(["operator"], say=lambda line: None)
    assert built["operator"].archive.stat().st_mode & 0o777 == 0o644
