# SPDX-License-Identifier: Apache-2.0
"""Memory and time that a restore takes: dt.fit in a job, and Keras's Model.fit with BackupAndRestore.

Each number is of a process of its own: one that trains from the beginning, and one that goes on from its checkpoint.
Prints a table for README.md.
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

from tests.trainer.support.harness import Cluster

PROGRAM = Path(__file__).parent / "programs" / "restored.py"
SIDES = ("dtjob", "keras")


def measured(side: str, megabytes: float, folder: Path) -> tuple[dict[str, float], dict[str, float]]:
    """What a run from the beginning has told, and the run that goes on from its checkpoint."""
    told, checkpoint = folder / "told.json", {"directory": str(folder / "checkpoints")}
    found = []
    for epochs in (1, 2):
        arguments = [side, str(megabytes), str(epochs), str(told), str(folder / "backup")]
        if side == "dtjob":
            where = folder / str(epochs)
            with Cluster(where, "Default", {"chief": 1}, PROGRAM, *arguments, checkpoint=checkpoint, fresh=True) as run:
                run.run()
        else:
            environ = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "2"}
            subprocess.run([sys.executable, str(PROGRAM), *arguments], env=environ, check=True)
        found.append(json.loads(told.read_text()))
    return found[0], found[1]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure each row, and print the table as it comes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=float, nargs="+", default=[400], help="of weights")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args(arguments)
    print("| side | MB | peak of training, MB | peak with a restore, MB | first step after a restore, s |")
    print("|---|---:|---:|---:|---:|")
    for megabytes in options.megabytes:
        for side in SIDES:
            rounds = []
            for _ in range(options.rounds):
                with tempfile.TemporaryDirectory() as folder:
                    rounds.append(measured(side, megabytes, Path(folder)))
            fresh, restored = (statistics.median(told[place]["peak"] for told in rounds) for place in (0, 1))
            seconds = statistics.median(after["seconds"] for _, after in rounds)
            print(f"| {side} | {megabytes:g} | {fresh:.0f} | {restored:.0f} | {seconds:.1f} |", flush=True)


if __name__ == "__main__":
    main()
