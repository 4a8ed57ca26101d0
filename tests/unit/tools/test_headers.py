# SPDX-License-Identifier: Apache-2.0
"""The licence line comes to the top of a file, once."""

import pytest

from tools.headers import LINE, sources, with_header


@pytest.mark.parametrize(
    ("text", "comment", "made"),
    [
        ('"""A."""\n', "#", f'# {LINE}\n"""A."""\n'),
        ("#!/bin/bash\nls\n", "#", f"#!/bin/bash\n# {LINE}\nls\n"),
        ("package a\n", "//", f"// {LINE}\npackage a\n"),
        (f"# {LINE}\nx = 1\n", "#", f"# {LINE}\nx = 1\n"),
    ],
)
def test_the_line_comes_first_and_once(text: str, comment: str, made: str) -> None:
    assert with_header(text, comment) == made
    assert with_header(made, comment) == made


def test_all_files_have_the_line_or_none() -> None:
    """The lead runs `make headers` once for all files; from then on each new file needs the line."""
    lines = [LINE in file.read_text() for file in sources()]
    assert lines
    with_line = sum(lines)
    assert with_line in (len(lines), *range(4)), f"{len(lines) - with_line} files lack it: run `make headers`"
