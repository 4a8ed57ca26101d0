# SPDX-License-Identifier: Apache-2.0
"""`make test` runs several processes: one has the nodes, two have control planes; the end says what was left out."""

import re
import subprocess
import sys
from pathlib import Path

NAMES = ("test_them.py", "test_others.py", "test_more.py")
ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import os, pathlib, pytest

@pytest.mark.parametrize("number", range(8))
def test_process(number):
    with (pathlib.Path(__file__).parents[2] / "who").open("a") as who:
        who.write(f"{pathlib.Path(__file__).parent.name} {__file__} {os.environ['PYTEST_XDIST_WORKER']}\\n")

@pytest.mark.slow
def test_more():
    pass

def test_never():
    pytest.skip("no such machine")
"""


def test_nodes_stay_with_one_process_and_the_end_names_skipped_and_slow_tests(tmp_path: Path) -> None:
    for folder in ("unit", "cluster", "trainer", "e2e"):
        (tmp_path / "tests" / folder).mkdir(parents=True)
        for name in NAMES:
            (tmp_path / "tests" / folder / name).write_text(PROGRAM)
    for file in ("conftest.py", "gpus.py", "side_by_side.py", "__init__.py"):
        (tmp_path / "tests" / file).write_text((ROOT / "tests" / file).read_text())
    (tmp_path / "tools").symlink_to(ROOT / "tools")
    (tmp_path / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text())
    command = [sys.executable, "-m", "pytest", "-n", "4", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    ran = [line.split() for line in (tmp_path / "who").read_text().splitlines()]
    assert sorted(tier for tier, _, _ in ran) == sorted(["unit", "cluster", "trainer", "e2e"] * 8 * len(NAMES))
    for file in {file for _, file, _ in ran}:
        assert len({process for _, of, process in ran if of == file}) == 1
    assert len({process for tier, _, process in ran if tier == "e2e"}) == 1
    assert len({process for tier, _, process in ran if tier == "cluster"}) <= 2
    assert len({process for _, _, process in ran}) == 4
    for tier in ("unit", "cluster", "trainer", "e2e"):
        assert f"tier {tier}: {len(NAMES)} skipped: no such machine" in done.stdout
        assert re.search(rf"tier {tier}: {len(NAMES)} left out as slow: `", done.stdout), done.stdout
