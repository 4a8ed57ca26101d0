"""The licence line of each source file: `SPDX-License-Identifier: Apache-2.0`.

python -m tools.headers            # adds it where it is missing
"""

import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LINE = "SPDX-License-Identifier: Apache-2.0"
COMMENT = {".py": "#", ".sh": "#", ".go": "//"}
NAMED = ("Makefile", "Dockerfile")


def sources() -> Iterator[Path]:
    """The files of the repository that carry a licence line: code, and no data, pages or recorded files of others."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in listed.split("\0"):
        file = ROOT / name
        if (file.suffix in COMMENT or file.name in NAMED) and file.is_file() and file.stat().st_size:
            yield file


def with_header(text: str, comment: str) -> str:
    """The text with the line at its top, after a `#!` line; itself if it has the line."""
    if LINE in "\n".join(text.splitlines()[:3]):
        return text
    first, _, rest = text.partition("\n")
    if first.startswith("#!"):
        return f"{first}\n{comment} {LINE}\n{rest}"
    return f"{comment} {LINE}\n{text}"


def main() -> None:
    """Write the line into each file that lacks it."""
    for file in sources():
        text = file.read_text()
        made = with_header(text, COMMENT.get(file.suffix, "#"))
        if made != text:
            file.write_text(made)


if __name__ == "__main__":
    main()
