# SPDX-License-Identifier: Apache-2.0
"""Hooks of mkdocs.yml: pages of the site that are files outside of docs/, and links between all of them.

In the repository a page links to files as they lie there. On the site a link to a file that is no page is left out, and
its text stays.
"""

import os
import re
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
OUTSIDE = {
    "CHANGELOG.md": "project/changelog.md",
    "CODE_OF_CONDUCT.md": "project/code-of-conduct.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "GOVERNANCE.md": "project/governance.md",
    "SECURITY.md": "project/security-policy.md",
    "benchmarks/README.md": "project/training-benchmarks.md",
    "benchmarks/operators/README.md": "project/operator-benchmarks.md",
    "benchmarks/results/README.md": "project/results.md",
    "helm/dtjob/README.md": "reference/chart.md",
}
"""Files of the repository that are pages, and where each is on the site."""
_PARTS = re.compile(r"(^```.*?^```$|^ {0,3}`{4,}.*?^`{4,}$)", re.M | re.S)
_LINK = re.compile(r"(!?)\[((?:[^\]\[]|\[[^\]]*\])*)\]\(([^)\s]+)\)")


def pictures() -> dict[str, str]:
    """Pictures of the benchmarks: where each lies in the repository, and on the site."""
    found = sorted((ROOT / "benchmarks" / "results").glob("*.png"))
    return {str(one.relative_to(ROOT)): f"project/results/{one.name}" for one in found}


def site_path(path: str) -> str | None:
    """Where a file of the repository is on the site; None if it is not there."""
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return {**OUTSIDE, **pictures()}.get(path)


def in_repository(page: str) -> str:
    """Where a page of the site lies in the repository."""
    return next((path for path, where in OUTSIDE.items() if where == page), f"docs/{page}")


def rewritten(text: str, page: str) -> str:
    """The page with links as the site has them. `page` is where it is on the site."""
    folder = PurePosixPath(in_repository(page)).parent

    def link(match: re.Match[str]) -> str:
        sign, words, target = match.groups()
        name, mark, anchor = target.partition("#")
        if "://" in target or target.startswith("mailto:") or not name:
            return match[0]
        where = site_path(os.path.normpath(folder / name))
        if where is None:
            return words
        return f"{sign}[{words}]({os.path.relpath(where, PurePosixPath(page).parent)}{mark}{anchor})"

    parts = _PARTS.split(text)
    return "".join(part if index % 2 else _LINK.sub(link, part) for index, part in enumerate(parts))


def on_files(files: Files, config: Any) -> Files:
    """Add the files outside of docs/."""
    for path, where in OUTSIDE.items():
        files.append(File.generated(config, where, content=(ROOT / path).read_text()))
    for path, where in pictures().items():
        files.append(File.generated(config, where, abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Rewrite the links of a page."""
    return rewritten(markdown, page.file.src_uri)
