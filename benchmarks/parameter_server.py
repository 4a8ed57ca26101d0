# SPDX-License-Identifier: Apache-2.0
"""ParameterServer: steps per second, milliseconds a step by size of a table, and saves, beside TensorFlow alone.

TensorFlow alone is its ClusterCoordinator with the same steps on the same batches. For steps and tables both sides take
turns in one process, and a ratio is the median of those of two turns after each other. A save is measured in a process
for each side, whose memory is its own. Prints tables for README.md.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.trainer.support.harness import Cluster, Member

PROGRAMS = Path(__file__).parent / "programs"
MIN_SHARD_BYTES = 65536
"""With this every measured table has a shard on each server, and the other variables have one shard."""
SAVES = 2
"""Saves of a run of `ps_saves.py`, before the last steps."""
SIDES = {"fit": "dt.fit", "modelFit": "Model.fit", "train": "dt.train"}
"""Of `ps_steps.py`, with their names in the table."""
Table = Callable[[argparse.Namespace, Path], None]


def ratio(mine: Sequence[float], others: Sequence[float]) -> float:
    """The median of the ratios of turns after each other."""
    return statistics.median(one / other for one, other in zip(mine, others, strict=True))


def standstills(ends: Sequence[float], every: int) -> list[float]:
    """Seconds of each save in which no step ended, from when each step ended, less the median time between two."""
    gaps = [after - before for before, after in pairwise(ends)]
    usual = statistics.median(gaps)
    return [gaps[save * every - 1] - usual for save in range(1, SAVES + 1)]


def times_of_saves(ends: Sequence[float], saved: Sequence[float], every: int) -> list[float]:
    """Seconds from the end of the last step before each save until the save is on disk."""
    return [done - ends[save * every - 1] for save, done in enumerate(saved, 1)]


def told_by(folder: Path, counts: Mapping[str, int], program: str, *arguments: object, shards: bool = False) -> Any:
    """Run a program until its end; `arguments` follow the file in `folder` for what it tells. What it has told."""
    file = folder / "told.json"
    given = [str(file) if each is None else str(each) for each in arguments]
    options = {"partitioner": {"minShardBytes": MIN_SHARD_BYTES}} if shards else None
    with Cluster(folder / "run", "ParameterServer", counts, PROGRAMS / program, *given, options=options) as run:
        run.start()
        _expect_success(run["chief-0"])
    return json.loads(file.read_text())


def _expect_success(chief: Member) -> None:
    while chief.process.poll() is None:  # some programs run for longer than any test waits
        time.sleep(0.2)
    if chief.process.poll():
        raise RuntimeError(f"the chief has failed\n{chief.output()}")


def steps(options: argparse.Namespace, folder: Path) -> None:
    """Print steps per second by number of workers and length of a step."""
    print(f"| workers | a step, s |{''.join(f' {side}, steps/s | of TensorFlow alone |' for side in SIDES.values())}")
    print(f"|---:|---:|{'---:|---:|' * len(SIDES)}")
    for workers in options.workers:
        counts = {"chief": 1, "worker": workers, "ps": 1}
        where = folder / str(workers)
        for row in told_by(where, counts, "ps_steps.py", workers, options.rounds, None, *options.seconds):
            cells = [f"{workers}", f"{row['seconds']:g}"]
            for side in SIDES:
                cells += [f"{statistics.median(row[side]):.1f}", f"{ratio(row[side], row[side + 'Alone']):.2f}"]
            _print_row(cells)


def tables(options: argparse.Namespace, folder: Path) -> None:
    """Print milliseconds a step by number of servers and size of the table."""
    print("| ps | table, MB | dt.fit, ms a step | TensorFlow alone, ms a step | times TensorFlow alone |")
    print("|---:|---:|---:|---:|---:|")
    for servers in options.servers:
        counts, where = {"chief": 1, "worker": 1, "ps": servers}, folder / str(servers)
        for row in told_by(where, counts, "ps_tables.py", options.rounds, None, *options.megabytes, shards=servers > 1):
            medians = [f"{statistics.median(row[side]):.1f}" for side in ("dtjob", "alone")]
            _print_row([f"{servers}", f"{row['megabytes']:g}", *medians, f"{ratio(row['dtjob'], row['alone']):.2f}"])


def saves(options: argparse.Namespace, folder: Path) -> None:
    """Print what saves of a table cost: seconds without a step, seconds until they are on disk, the chief's memory."""
    print("| ps | table, MB | side | no step ends for, s | until it is on disk, s | chief's peak above its start, MB |")
    print("|---:|---:|---|---:|---:|---:|")
    for servers in options.servers:
        for megabytes in options.megabytes:
            found: dict[str, list[dict[str, Any]]] = {"dtjob": [], "alone": []}
            for number in range(options.rounds):
                for side in found if number % 2 == 0 else reversed(found):
                    with tempfile.TemporaryDirectory(dir=folder) as where:
                        found[side].append(_saved(side, servers, megabytes, options.every, Path(where)))
            for side, told in found.items():
                still = [each for one in told for each in standstills(one["ends"], options.every)]
                until = [each for one in told for each in times_of_saves(one["ends"], one["saved"], options.every)]
                memory = statistics.median(one["peak"] - one["before"] for one in told)
                cells = [f"{statistics.median(still):.2f}", f"{statistics.median(until):.2f}", f"{memory:.0f}"]
                _print_row([f"{servers}", f"{megabytes:g}", side, *cells])


def _saved(side: str, servers: int, megabytes: float, every: int, folder: Path) -> dict[str, Any]:
    """What a run of one side has told; `saved` has the time at which each save was on disk."""
    file, counts = folder / "told.json", {"chief": 1, "worker": 1, "ps": servers}
    arguments = (side, str(servers), str(megabytes), str(every), str(file), str(folder))
    checkpoint = {"everySteps": every} if side == "dtjob" else None
    saved = []
    program = PROGRAMS / "ps_saves.py"
    with Cluster(folder / "run", "ParameterServer", counts, program, *arguments, checkpoint=checkpoint) as run:
        run.start()
        for save in range(1, SAVES + 1) if checkpoint else ():
            run["chief-0"].wait_for_checkpoint(save * every)
            saved.append(time.time())
        _expect_success(run["chief-0"])
    told: dict[str, Any] = json.loads(file.read_text())
    return told | ({"saved": saved} if saved else {})


def _print_row(cells: Sequence[str]) -> None:
    print(f"| {' | '.join(cells)} |")
    sys.stdout.flush()


PARTS: Mapping[str, Table] = {"steps": steps, "tables": tables, "saves": saves}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure each part, and print its table as it comes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", nargs="+", type=int, default=[1, 2, 4], help="of the part steps")
    parser.add_argument("--seconds", nargs="+", type=float, default=[0.3, 0.13, 0.1, 0.05, 0.02], help="of a step")
    parser.add_argument("--servers", nargs="+", type=int, default=[1, 3], help="ps of the parts tables and saves")
    parser.add_argument("--megabytes", nargs="+", type=float, default=[0.3, 25, 256], help="add 1000 if memory allows")
    parser.add_argument("--every", type=int, default=200, help="steps between saves")
    options = parser.parse_args(arguments)
    for part in options.parts:
        with tempfile.TemporaryDirectory() as folder:
            PARTS[part](options, Path(folder))
        print()


if __name__ == "__main__":
    main()
