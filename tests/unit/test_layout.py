# SPDX-License-Identifier: Apache-2.0
"""Rules of the repository itself that no linter knows."""

import ast
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LONGEST_FILE, LONGEST_FUNCTION = 450, 60
"""Lines. A function's docstring does not count: `fit` explains fifteen arguments of its users."""

MOST_FILES = 14
"""In one folder, beside `__init__.py`: as many as a reader takes in at once."""

NO_SUBJECTS = ("what", "it", "one", "who", "of", "so")
"""A test's name that begins with these does not say what its subject is."""

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


@cache
def tree(file: Path) -> ast.Module:
    """The file, parsed once for all tests."""
    return ast.parse(file.read_text())


def product() -> Iterator[tuple[str, Path]]:
    """Name and path of every Python file of both packages."""
    for top in ("operator", "trainer_image"):
        for file in (ROOT / top).rglob("*.py"):
            yield str(file.relative_to(ROOT)), file


def function_lengths(file: Path) -> Iterator[tuple[str, int]]:
    """Name and lines, less the docstring's, of every function."""
    for node in ast.walk(tree(file)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or 0) - node.lineno + 1
            if ast.get_docstring(node) is not None:
                lines -= (node.body[0].end_lineno or 0) - node.body[0].lineno + 1
            yield node.name, lines


def names_of_tests() -> Iterator[tuple[str, str]]:
    """File and name of every test."""
    for file in (ROOT / "tests").rglob("test_*.py"):
        for name in re.findall(r"^ *(?:async )?def (test_\w+)", file.read_text(), re.M):
            yield str(file.relative_to(ROOT)), name


def test_every_module_says_what_it_is():
    assert not [name for name, file in product() if ast.get_docstring(tree(file)) is None]


def test_no_file_and_no_function_is_too_long_to_be_read():
    assert not [name for name, file in product() if len(file.read_text().splitlines()) > LONGEST_FILE]
    assert not [
        f"{name}: {function} has {lines} lines"
        for name, file in product()
        for function, lines in function_lengths(file)
        if lines > LONGEST_FUNCTION
    ]


def test_no_folder_has_more_files_than_a_reader_takes_in():
    counts = Counter(str(Path(name).parent) for name, _ in product() if Path(name).name != "__init__.py")
    assert not {folder: n for folder, n in counts.items() if n > MOST_FILES}


def test_the_name_of_each_test_begins_with_its_subject():
    found = [f"{file}::{name}" for file, name in names_of_tests() if name.split("_")[1] in NO_SUBJECTS]
    assert not found, "say in the name what the test is about"


@pytest.mark.parametrize(
    ("tests", "package"), [("operator", "operator/dtjob"), ("trainer", "trainer_image/dtjob_trainer")]
)
def test_unit_tests_have_the_folders_of_the_package(tests: str, package: str):
    """Tests of `plan/elastic.py` may have a folder `plan/elastic/` of their own."""
    root = ROOT / "tests" / "unit" / tests
    folders = {path.parent.relative_to(root) for path in committed() if path.is_relative_to(root)}
    assert len(folders) > 10
    code = ROOT / package
    other = {one for one in folders if not (code / one).is_dir() and not (code / one).with_suffix(".py").is_file()}
    assert {one.parts[0] for one in other} <= {"simulation"}


NO_FILES = re.compile(r"/(test_)?x\.py$")
"""Names of files that stand for any."""
TEST_OF_OURS = re.compile(r"\btests/(?:\w+/)+\w+\.py\b")


def test_the_tests_that_files_name_are_there():
    """A hook of pre-commit that names a test that has moved lets nobody commit."""
    named = {
        (str(path.relative_to(ROOT)), test)
        for path in committed()
        if path.suffix in (".py", ".md", ".yaml", ".yml", ".toml") or path.name == "Makefile"
        for test in TEST_OF_OURS.findall(path.read_text())
    }
    assert len(named) > 50
    assert [one for one in sorted(named) if not (ROOT / one[1]).exists() and not NO_FILES.search(one[1])] == []
