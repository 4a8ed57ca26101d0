# SPDX-License-Identifier: Apache-2.0
"""The pages are short sentences, and README.md is short."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MOST_WORDS = 25
"""Of a sentence."""
MOST_BYTES = 7680
"""Of README.md."""
OTHER_TEXT = {"api.md", "contract.md", "fit.md"}
"""A page of the descriptions of fields, a protocol with long rules, and a page of the trainer's messages."""
PAGES = [
    *sorted(ROOT.glob("*.md")),
    ROOT / "helm" / "dtjob" / "README.md",
    *sorted(page for page in (ROOT / "docs").rglob("*.md") if page.name not in OTHER_TEXT),
]
_CODE_BLOCK = re.compile(r"^```.*?^```$", re.M | re.S)
_COMMENT = re.compile(r"<!--.*?-->", re.S)
_CODE_SPAN = re.compile(r"`[^`]+`")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_NEW_UNIT = re.compile(r"^\s*(?:[-*>] |\d+\. |#+ )")
_SENTENCE_END = re.compile(r"[.!?][)\"*_]*\s+| · ")
"""A middle dot stands between links of a list."""


def units(text: str) -> Iterator[str]:
    """Paragraphs, list items, headings and cells of tables, each as one line; code spans are one word."""
    text = _COMMENT.sub("", _CODE_BLOCK.sub("\n", text))
    text = _LINK.sub(r"\1", _CODE_SPAN.sub("code", text))
    lines: list[str] = []
    for line in [*text.splitlines(), ""]:
        begins = not line.strip() or line.startswith("|") or _NEW_UNIT.match(line)
        if begins and lines:
            yield " ".join(lines)
            lines = []
        if line.startswith("|"):
            yield from (cell.strip() for cell in line.strip("|").split("|"))
        elif line.strip():
            lines.append(line.strip())


def sentences(text: str) -> Iterator[str]:
    """Every sentence of a page in Markdown, without code blocks."""
    for unit in units(text):
        yield from (sentence for sentence in _SENTENCE_END.split(unit) if sentence)


def words(sentence: str) -> int:
    """How many words it has; a dash or an arrow is none."""
    return sum(any(letter.isalnum() for letter in word) for word in sentence.split())


def test_a_sentence_ends_with_its_cell_its_item_and_its_paragraph() -> None:
    page = "# A page\n\nOne, `with code`. Two,\non two lines: [a link](x.md).\n\n- an item\n- b\n\n| c | d e |\n"
    assert list(sentences(page)) == [
        "# A page", "One, code", "Two, on two lines: a link.", "- an item", "- b", "c", "d e",
    ]  # fmt: skip


def test_code_and_comments_are_no_sentences() -> None:
    assert list(sentences("<!-- a note -->\n```yaml\na: b\n```\nText.\n")) == ["Text."]


def test_words_are_counted_without_signs() -> None:
    assert words("one – two → three, 4") == 4


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_sentence_is_too_long(page: Path) -> None:
    found = {one: words(one) for one in sentences(page.read_text())}
    assert {one: many for one, many in found.items() if many > MOST_WORDS} == {}


def test_the_readme_is_short() -> None:
    assert (ROOT / "README.md").stat().st_size <= MOST_BYTES
