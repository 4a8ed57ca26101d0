"""What an asynchronous save of 200 MB holds up: the gap after a step that saves, against one after another step."""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path

from tests.trainer.support.harness import Cluster

PROGRAMS = Path(__file__).parent / "programs"


def main() -> None:
    """Train, and print the stall in milliseconds: median, largest, and the steps' own median beside it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--saves", type=int, default=20)
    parser.add_argument("--every", type=int, default=200, help="steps between saves: each must be over by the next")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "gaps.json"
        steps = options.saves * options.every + 1
        checkpoint = {"everySteps": options.every, "maxToKeep": 2}
        program, arguments = PROGRAMS / "stall.py", (str(file), str(steps), str(options.every))
        with Cluster(Path(folder), "Default", {"chief": 1}, program, *arguments, checkpoint=checkpoint) as run:
            run.run()
        told = json.loads(file.read_text())
    usual = statistics.median(told["others"])
    stalls = [1000 * (gap - usual) for gap in told["saves"]]
    result = {
        "stallMilliseconds": {"median": statistics.median(stalls), "largest": max(stalls)},
        "usualGapMilliseconds": 1000 * usual,
        "stepMilliseconds": 1000 * statistics.median(told["steps"]),
        "stepAfterSaveMilliseconds": 1000 * statistics.median(told["after"]),
        "saves": len(stalls),
    }
    json.dump(result, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
