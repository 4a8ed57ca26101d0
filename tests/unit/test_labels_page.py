# SPDX-License-Identifier: Apache-2.0
"""docs/reference/labels.md has each label of the code, and no other of dtjob."""

import re
from pathlib import Path

from dtjob.objects import kueue, labels

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reference" / "labels.md").read_text()
IMPORTED = re.compile(r"^from dtjob\.api\.(?:names|job) import .*\bGROUP\b(?! as)", re.M)
"""How a module begins that has our group by this name. Others have that of Kueue or Volcano."""
OWN = re.compile(r'f"\{GROUP\}/([a-z-]+)"')


def test_each_label_and_annotation_of_dtjob_is_on_the_page() -> None:
    """Every name below our group that some module writes."""
    files = (ROOT / "operator" / "dtjob").rglob("*.py")
    texts = [text for file in files if IMPORTED.search(text := file.read_text())]
    written = {f"training.dtjob.dev/{name}" for text in texts for name in OWN.findall(text)}
    assert len(written) > 5
    assert written == set(re.findall(r"^\| `(training\.dtjob\.dev/[a-z-]+)`", PAGE, re.M))
    assert f"| `{labels.MANAGED_BY}` |" in PAGE


def test_the_labels_of_kueue_that_are_read_are_on_the_page() -> None:
    for name in (kueue.QUEUE, kueue.PRIORITY_CLASS, kueue.PREBUILT, kueue.MAX_EXEC_TIME):
        assert f"| `{name}` |" in PAGE
