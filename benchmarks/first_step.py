# SPDX-License-Identifier: Apache-2.0
"""Seconds and processor seconds from the command to the end of the first training step: dtjob, and the plain script.

The same model and data by Model.fit in `python script.py` and under `dtjob run`, and by dt.fit under `dtjob run` and
under the command of a training container, for each strategy. All processes of a run count. Rounds take turns; the files
are in the page cache.
"""

import argparse
import statistics
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

from benchmarks.starts import (
    GROUPS,
    PHASES,
    TF_KERAS,
    TWO_CPUS,
    Measured,
    Start,
    by_model_fit,
    by_run,
    in_containers,
    plain,
)

PLAIN, RESTARTED = "plain Keras", "from a checkpoint"
DTJOB: Mapping[str, Callable[[Path, str], Start]] = {
    "dtjob run": by_run,
    "dtjob run of Model.fit": by_model_fit,
    "container": in_containers,
}
CASES = [*GROUPS, TF_KERAS]
"""The strategies, and tf_keras under Default."""
Key = tuple[str, str]
"""The way to start, and what: a case, or a restart."""


def restarts(folder: Path, ways: list[str]) -> dict[Key, Start]:
    """Starts that find a checkpoint. Each is made by training."""
    made = {(PLAIN, RESTARTED): plain(folder / "plain", "Default", folder / "kept")}
    made |= {(way, RESTARTED): DTJOB[way](folder / way, "Default") for way in ways}
    for (way, _), start in made.items():
        start.leave_a_checkpoint(None if way == PLAIN else "**/ckpt-*.index")
    return made


def once(folder: Path, kept: Mapping[Key, Start], cases: list[str], ways: list[str]) -> dict[Key, Measured]:
    """One round: every way to start, beside the plain script."""
    folder.mkdir()
    bases, found = [], {}
    for number, case in enumerate(cases):
        bases.append(plain(folder / f"plain-{number}", "Default").measure())
        if case in (*TWO_CPUS, TF_KERAS):
            found[PLAIN, case] = plain(folder / f"plain-{case}", case).measure()
        for way in ways:
            found[way, case] = DTJOB[way](folder / f"{way}-{case}", case).measure()
    found |= {key: start.measure() for key, start in kept.items()}
    return {(PLAIN, "Default"): middle(bases), **found}


def middle(several: list[Measured]) -> Measured:
    """The median of each number: the plain script is started beside every case."""
    names = {name for one in several for name in one.by_process}
    return Measured(
        statistics.median(map(wall, several)),
        statistics.median(map(cpu, several)),
        {p: (_median(several, p, 0), _median(several, p, 1)) for p in PHASES},
        Counter({name: statistics.median(one.by_process[name] for one in several) for name in names}),
    )


def _median(several: list[Measured], phase: str, which: int) -> float:
    return statistics.median(one.phases[phase][which] for one in several)


def median(rounds: list[dict[Key, Measured]], key: Key, of: Callable[[Measured], float]) -> float:
    """Over the rounds."""
    return statistics.median(of(each[key]) for each in rounds)


def ratio(rounds: list[dict[Key, Measured]], key: Key, base: Key, of: Callable[[Measured], float]) -> float:
    """The median of each round's ratio."""
    return statistics.median(of(each[key]) / of(each[base]) for each in rounds)


def table(rounds: list[dict[Key, Measured]]) -> list[str]:
    """Seconds and ratios, a line for each start."""
    lines = [
        "| | seconds | to the plain script's | processor seconds | to the plain script's | of the same kind |",
        "|---|---|---|---|---|---|",
    ]
    for key in rounds[0]:
        way, what = key
        base, same = (PLAIN, "Default"), (PLAIN, what)
        cells = [f"{way}, {what}"]
        for of in (wall, cpu):
            cells += [f"{median(rounds, key, of):.2f}", "" if key == base else f"{ratio(rounds, key, base, of):.2f}"]
        own = key != same and same != base and same in rounds[0]
        cells += [f"{ratio(rounds, key, same, wall):.2f}, {ratio(rounds, key, same, cpu):.2f}" if own else ""]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def phases(rounds: list[dict[Key, Measured]]) -> list[str]:
    """Where the seconds go: of the program's own process, and processor seconds of the others."""
    lines = [
        f"| seconds / processor seconds to … | {' | '.join(PHASES.values())} | processor seconds of the processes |",
        "|---" * (len(PHASES) + 2) + "|",
    ]
    for key in rounds[0]:
        cells = [", ".join(key)]
        for phase in PHASES:
            took = [_median([each[key] for each in rounds], phase, which) for which in (0, 1)]
            cells.append(f"{took[0]:.2f} / {took[1]:.2f}")
        by = middle([each[key] for each in rounds]).by_process
        cells.append(", ".join(f"{name} {seconds:.2f}" for name, seconds in by.most_common() if seconds >= 0.01))
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def wall(measured: Measured) -> float:
    """Its seconds."""
    return measured.wall


def cpu(measured: Measured) -> float:
    """Its processor seconds."""
    return measured.cpu


def main() -> None:
    """Measure, and print both tables as the README has them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cases", nargs="*", choices=CASES, default=CASES)
    parser.add_argument("--ways", nargs="*", choices=DTJOB, default=list(DTJOB))
    parser.add_argument("--no-restarts", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        kept = {} if options.no_restarts else restarts(folder, options.ways)
        plain(folder / "warm", "Default").measure()  # into the page cache
        rounds = [once(folder / str(number), kept, options.cases, options.ways) for number in range(options.rounds)]
    print("\n".join([*table(rounds), "", *phases(rounds)]))


if __name__ == "__main__":
    main()
