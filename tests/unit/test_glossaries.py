# SPDX-License-Identifier: Apache-2.0
"""The two glossaries of CONTRIBUTING.md: each word is there once, and the code that it is for uses it."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GLOSSARIES = {"### Words": "operator/dtjob", "### Words of the trainer": "trainer_image/dtjob_trainer"}


def words_of(title: str) -> list[str]:
    section = (ROOT / "CONTRIBUTING.md").read_text().split(f"\n{title}\n")[1].partition("\n#")[0]
    return re.findall(r"^\| ([^|]+?) \|", section, re.M)[1:]


@pytest.mark.parametrize(("title", "package"), GLOSSARIES.items())
def test_each_word_is_there_once_and_its_package_uses_it(title: str, package: str) -> None:
    words = words_of(title)
    assert len(words) > 20
    assert len({*words}) == len(words)
    code = " ".join(file.read_text() for file in (ROOT / package).rglob("*.py")).lower()
    code = re.sub(r"[\s_]+", " ", code)
    assert [word for word in words if word.lower().replace("_", " ") not in code] == []
