# SPDX-License-Identifier: Apache-2.0
"""What a save holds up: the gap after a step that saves, against one after another step.

Measured without and with EarlyStopping(restore_best_weights=True), whose state has all weights once more. Keras beside
it is Model.fit with BackupAndRestore, which saves no state of other callbacks.
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
from typing import Any

from tests.trainer.support.harness import Cluster

PROGRAMS = Path(__file__).parent / "programs"


def main(arguments: Sequence[str] | None = None) -> None:
    """Train twice on each side; print the stalls in milliseconds, median and largest, and the steps' own beside."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--saves", type=int, default=20)
    parser.add_argument("--every", type=int, default=200, help="steps between saves: each must be over by the next")
    parser.add_argument("--megabytes", type=int, default=200, help="of weights")
    options = parser.parse_args(arguments)
    kinds = {"withoutCallback": False, "withBestWeights": True}
    found = {side: {kind: measured(side, options, best) for kind, best in kinds.items()} for side in ("dtjob", "keras")}
    json.dump(found, sys.stdout, indent=1)
    print()


def measured(side: str, options: argparse.Namespace, best: bool) -> dict[str, Any]:
    """One run of a side, with or without the callback."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "gaps.json"
        numbers = (options.saves + 1, options.every, options.megabytes, int(best))
        arguments = [side, str(file), *map(str, numbers)]
        if side == "dtjob":
            checkpoint = {"everySteps": options.every, "maxToKeep": 2}
            program = PROGRAMS / "stall.py"
            with Cluster(Path(folder), "Default", {"chief": 1}, program, *arguments, checkpoint=checkpoint) as run:
                run.run()
                newest = max(run.checkpoints.glob("ckpt-*.index"), key=lambda path: path.stat().st_mtime)
                saved = list(run.checkpoints.glob(f"{newest.stem}.*"))
        else:
            environ = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "2"}
            command = [sys.executable, str(PROGRAMS / "stall.py"), *arguments]
            subprocess.run(command, env=environ, stdout=subprocess.DEVNULL, check=True)
            saved = [path for path in (Path(folder) / "backup").rglob("*") if path.is_file()]
        size = sum(path.stat().st_size for path in saved)
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
