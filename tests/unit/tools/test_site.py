# SPDX-License-Identifier: Apache-2.0
"""The documentation site: it is built strictly, and its links lead to pages that are there."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest

from tools.site import OUTSIDE, ROOT, rewritten


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as `make docs` builds it."""
    where = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", f"--site-dir={where}"]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return where


def broken(site: Path) -> Iterator[str]:
    """Links and pictures of the pages that lead to no file."""
    for page in site.rglob("*.html"):
        for target in re.findall(r'(?:href|src)="([^"#?]+)', page.read_text()):
            if re.match(r"[a-z]+:|//", target) or page.name == "404.html":
                continue
            found = (page.parent / unquote(target)).resolve()
            if not (found.is_file() or (found / "index.html").is_file()):
                yield f"{page.relative_to(site)}: {target}"


def test_every_link_of_the_site_leads_somewhere(site: Path) -> None:
    assert len(list(site.rglob("*.html"))) > 30
    assert set(broken(site)) == set()


def test_the_python_api_has_its_arguments(site: Path) -> None:
    page = (site / "reference" / "dtjob-trainer" / "index.html").read_text()
    assert "steps_per_epoch" in page


def test_each_page_from_outside_is_a_file() -> None:
    assert all((ROOT / path).is_file() for path in OUTSIDE)


@pytest.mark.parametrize(
    ("page", "link", "made"),
    [
        ("start/quickstart.md", "[a](../../README.md)", "a"),
        ("start/quickstart.md", "[a](../jobs/life.md#x)", "[a](../jobs/life.md#x)"),
        ("start/quickstart.md", "[a](../../CHANGELOG.md)", "[a](../project/changelog.md)"),
        ("project/contributing.md", "[a](docs/migrate/tfjob.md)", "[a](../migrate/tfjob.md)"),
        ("project/results.md", "![a](burst.png)", "![a](results/burst.png)"),
        ("README.md", "[a](#b)", "[a](#b)"),
        ("README.md", "```\n[a](gone.md)\n```", "```\n[a](gone.md)\n```"),
    ],
)
def test_links_are_rewritten_for_the_site(page: str, link: str, made: str) -> None:
    assert rewritten(link, page) == made
