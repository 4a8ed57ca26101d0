# SPDX-License-Identifier: Apache-2.0
"""What an asynchronous save holds up: the gap after a step that saves, against one after another step.

Measured without and with EarlyStopping(restore_best_weights=True), whose state has all weights once more.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.trainer.support.harness import Cluster

PROGRAMS = Path(__file__).parent / "programs"


def main(arguments: Sequence[str] | None = None) -> None:
    """Train twice, and print the stalls in milliseconds: median, largest, and the steps' own median beside them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--saves", type=int, default=20)
    parser.add_argument("--every", type=int, default=200, help="steps between saves: each must be over by the next")
    parser.add_argument("--megabytes", type=int, default=200, help="of weights")
    options = parser.parse_args(arguments)
    runs = {name: measured(options, best) for name, best in (("withoutCallback", False), ("withBestWeights", True))}
    json.dump(runs, sys.stdout, indent=1)
    print()


def measured(options: argparse.Namespace, best: bool) -> dict[str, Any]:
    """One run, with or without the callback."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "gaps.json"
        checkpoint = {"everySteps": options.every, "maxToKeep": 2}
        numbers = (options.saves + 1, options.every, options.megabytes, int(best))
        program, arguments = PROGRAMS / "stall.py", (str(file), *map(str, numbers))
        with Cluster(Path(folder), "Default", {"chief": 1}, program, *arguments, checkpoint=checkpoint) as run:
            run.run()
            newest = max(run.checkpoints.glob("ckpt-*.index"), key=lambda path: path.stat().st_mtime)
            size = sum(path.stat().st_size for path in run.checkpoints.glob(f"{newest.stem}.*"))
        told = json.loads(file.read_text())
    usual = statistics.median(told["others"])
    stalls = [1000 * (gap - usual) for gap in told["saves"]]
    return {
        "stallMilliseconds": {"median": statistics.median(stalls), "largest": max(stalls)},
        "usualGapMilliseconds": 1000 * usual,
        "stepMilliseconds": 1000 * statistics.median(told["steps"]),
        "stepAfterSaveMilliseconds": 1000 * statistics.median(told["after"]),
        "checkpointMegabytes": size / 1e6,
        "saves": len(stalls),
    }


if __name__ == "__main__":
    main()
