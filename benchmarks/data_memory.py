# SPDX-License-Identifier: Apache-2.0
"""Memory that training on arrays takes beside the arrays themselves: dt.fit, and Keras's own Model.fit.

Each number is of a process of its own. Prints a table for README.md.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

PROGRAM = Path(__file__).parent / "programs" / "data_of_size.py"
SIDES = ("dtjob", "keras")
KINDS = ("array", "mapped")


def measured(side: str, kind: str, megabytes: int) -> dict[str, float]:
    """Megabytes that one run takes: while it trains, and at its peak."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, str(PROGRAM), side, kind, str(megabytes), folder]
        environ = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "2"}
        done = subprocess.run(command, env=environ, stdout=subprocess.PIPE, text=True, check=True)
    line = next(line for line in done.stdout.splitlines() if line.startswith("found "))
    found: dict[str, float] = json.loads(line.removeprefix("found "))
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure each row, and print the table as it comes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, nargs="+", default=[512])
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args(arguments)
    print("| data | MB | dt.fit, MB more | at its peak | Model.fit, MB more | at its peak |")
    print("|---|---:|---:|---:|---:|---:|")
    for kind in options.kinds:
        for megabytes in options.megabytes:
            cells = []
            for side in SIDES:
                rounds = [measured(side, kind, megabytes) for _ in range(options.rounds)]
                cells += [f"{statistics.median(each[name] for each in rounds):.0f}" for name in ("more", "peak")]
            print(f"| {kind} | {megabytes} |", *(f"{cell} |" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
