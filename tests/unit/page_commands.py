# SPDX-License-Identifier: Apache-2.0
"""What stands on the pages: blocks of code, and commands in blocks and in the text."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "AGENTS.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "benchmarks").rglob("README.md")),
    ROOT / "helm" / "dtjob" / "README.md",
]
PROGRAMS = ("dtjob", "make", "helm", "kubectl", "python", "docker", "kind", "ctr", "kubeconform")
COMMANDS, SESSION, NO_COMMANDS = ("sh", "console", ("text", "yaml", "python", "json", "mermaid", "dockerfile", "diff"))
"""Languages of blocks: each line is a command; lines that begin with `$` are commands; no line is one."""
PLAIN_SHELL = ("for", "done", "echo", "cat", "tail", "pip")
"""Words that may begin a part of a command line beside PROGRAMS."""
UNFINISHED = ("…", "...", "[", "<", "{")
"""Where these stand in a command of the text, it is a form of commands and not a command."""


_BLOCKS = re.compile(r"^ *```([^\n]*)\n(.*?)^ *```", re.M | re.S)
_MARKED = re.compile(r"^<!-- ([^\n]+?) -->\n```\w*\n(.*?)^```", re.M | re.S)


def blocks(page: Path) -> list[tuple[str, str]]:
    """Language and text of each block of code."""
    return _BLOCKS.findall(page.read_text())


def marked(page: Path, mark: str = "") -> dict[str, str]:
    """The text of each block after a comment that begins with `mark`, by the rest of this comment."""
    found = _MARKED.findall(page.read_text())
    return {comment.removeprefix(mark): text for comment, text in found if comment.startswith(mark)}


def documents(page: Path) -> list[dict[str, Any]]:
    """The objects in the page's blocks of YAML."""
    texts = [text for language, text in blocks(page) if language == "yaml"]
    return [one for text in texts for one in yaml.safe_load_all(text) if isinstance(one, dict)]


def parts(page: Path) -> Iterator[list[str]]:
    """The words of each part of a command line in the blocks of commands and sessions, without the redirections."""
    for language, block in blocks(page):
        for line in re.sub(r"\\\n\s*", " ", block).splitlines():
            if language == COMMANDS or (language == SESSION and line.startswith("$ ")):
                yield from _parts(line.strip().removeprefix("$ "))


def of_blocks(page: Path) -> Iterator[list[str]]:
    """The same where the program is one of PROGRAMS."""
    yield from filter(None, map(_program, parts(page)))


def of_text(page: Path) -> Iterator[list[str]]:
    """The same of what stands as code in the text. It may leave out arguments."""
    for code in re.findall(r"(?<!`)`([^`\n]+)`(?!`)", _BLOCKS.sub("", page.read_text())):
        if not any(mark in code for mark in UNFINISHED):
            try:
                yield from filter(None, map(_program, _parts(code)))
            except ValueError:  # code with an apostrophe
                continue


def _parts(line: str) -> Iterator[list[str]]:
    part: list[str] = []
    for word in [*_words(line), ";"]:
        if word not in (";", "&&", "||", "|", "&"):
            part.append(word)
            continue
        if part:
            yield part[1:] if part[0] == "do" else part
        part = []


def _words(line: str) -> list[str]:
    """Words of a line, with `;`, `&&` and `|` as words of their own, and without comments and redirections."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=";&|")
    lexer.whitespace_split = True
    words = list(lexer)
    kept: list[str] = []
    skip = False
    for word in words:
        if skip:
            skip = False
        elif re.fullmatch(r"\d?[<>]{1,2}", word):
            skip = True
        elif not re.match(r"\d?[<>]", word):
            kept.append(word)
    return kept


def _program(words: list[str]) -> list[str]:
    """The command without `sudo`, environment and the directory of the program; empty where it is not ours."""
    while words and (re.fullmatch(r"[A-Z_]+=.*", words[0]) or words[0] in ("sudo", "nohup", "time")):
        words = words[1:]
    if words[:3] == ["python", "-m", "dtjob"]:
        words = ["dtjob", *words[3:]]
    if words[:2] == ["kubectl", "dtjob"]:
        words = ["dtjob", *words[2:]]
    if len(words) < 2 or Path(words[0]).name not in PROGRAMS:
        return []
    return [Path(words[0]).name, *words[1:]]
