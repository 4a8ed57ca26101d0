"""Rules of the repository itself that no linter knows."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# In two parts, so that this file does not hold what it looks for.
REGISTRY_HOSTS = [
    ".".join(parts)
    for parts in (
        ("pypi", "org"), ("pythonhosted", "org"), ("docker", "io"), ("ghcr", "io"), ("quay", "io"), ("gcr", "io"),
        ("proxy.golang", "org"), ("sum.golang", "org"), ("registry.k8s", "io"),
        ("registry.npmjs", "org"), ("deb.debian", "org"),
    )
]  # fmt: skip


def committed() -> list[Path]:
    """Every file that git follows or would follow."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("this is no git checkout, so there is no list of committed files")
    return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def test_operator_is_no_package():
    """As a package the directory would hide the standard library's `operator` from everything run in this directory."""
    assert not (ROOT / "operator" / "__init__.py").exists()


def test_no_file_names_a_registry():
    """Where packages and images come from is the user's configuration, never ours."""
    found = [
        f"{file.relative_to(ROOT)}: {host}"
        for file in committed()
        for host in REGISTRY_HOSTS
        if host.encode() in file.read_bytes()
    ]
    assert not found


def test_every_module_says_what_it_is():
    missing = [
        str(file.relative_to(ROOT))
        for top in ("operator", "trainer_image")
        for file in (ROOT / top).rglob("*.py")
        if not file.read_text().lstrip().startswith('"""')
    ]
    assert not missing
