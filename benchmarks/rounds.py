# SPDX-License-Identifier: Apache-2.0
"""Measures two sides in turns, so that whatever else the machine does meets both."""

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

Side = Callable[[Path], float]
"""Measures once, in a directory of its own that is not there yet; seconds."""


def take_turns(what: str, description: str | None, by_dtjob: Side, by_hand: Side) -> None:
    """Measure `--rounds` times, and print `what` (the medians) and each round's seconds as one JSON object."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    seconds: dict[str, list[float]] = {"dtjob": [], "byHand": []}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(options.rounds):
            seconds["dtjob"].append(by_dtjob(Path(folder) / f"dtjob-{number}"))
            seconds["byHand"].append(by_hand(Path(folder) / f"byHand-{number}"))
    medians = {name: statistics.median(each) for name, each in seconds.items()}
    json.dump({what: medians, "rounds": seconds}, sys.stdout, indent=1)
    print()
