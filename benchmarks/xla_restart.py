# SPDX-License-Identifier: Apache-2.0
"""Seconds from kill -9 to the next new step of a model that XLA compiles: without and with XLA's persistent cache.

The cache is TensorFlow's own (`--tf_xla_persistent_cache_directory` in TF_XLA_FLAGS). The first process fills it, and
the process that is restarted reads it. The model is the small convolutional network of the tests on GPUs.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.recovery import seconds_to_new_step
from tests.trainer.support.harness import PROGRAMS
from tests.trainer.support.local_runs import LocalRun, manifest

FLAGS = "TF_XLA_FLAGS"
BEFORE, EVERY = 40, 20
"""The step after which the process is killed, and steps between saves."""
EPOCHS = 5000
"""Of 20 steps each: more than a process makes before it is killed."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Take turns without and with the cache; print the seconds of each round, and their medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--not-compiled", action="store_true", help="measure a model that XLA does not compile, too")
    options = parser.parse_args(arguments)
    sides = ["withoutCache", "withCache", *(["notCompiled"] if options.not_compiled else [])]
    found: dict[str, list[dict[str, float]]] = {side: [] for side in sides}
    for _ in range(options.rounds):
        for side in sides:
            with tempfile.TemporaryDirectory() as folder:
                found[side].append(measured(side, Path(folder)))
    medians = {
        side: {name: round(statistics.median(one[name] for one in rounds), 2) for name in rounds[0]}
        for side, rounds in found.items()
    }
    json.dump({"medians": medians, "rounds": found}, sys.stdout, indent=1)
    print()


def measured(side: str, folder: Path) -> dict[str, float]:
    """Seconds to the first step from the command, and from the kill to a step after the restored one."""
    cache = folder / "cache"
    cache.mkdir()
    args = [f"--epochs={EPOCHS}", *([] if side == "notCompiled" else ["--jit"])]
    program: dict[str, Any] = {"entrypoint": str(PROGRAMS / "on_gpus.py"), "args": args}
    if side == "withCache":
        program["env"] = [{"name": FLAGS, "value": f"--tf_xla_persistent_cache_directory={cache}"}]
    checkpoint = {"storage": {"volume": {"emptyDir": {}}}, "everySteps": EVERY}
    blocks: dict[str, Any] = {"strategy": "Default", "image": None, "program": program, "checkpoint": checkpoint}
    file = manifest("digits.yaml", folder / "job.yaml", 1, replicaSpecs={"chief": {}}, **blocks)
    began = time.monotonic()
    with LocalRun(file, folder / "work") as run:
        run.wait_for_step(1)
        first = time.monotonic() - began
        restart = seconds_to_new_step(run, BEFORE, "chief-0")
    return {"firstStep": first, "restart": restart, "filesInTheCache": float(len(list(cache.iterdir())))}


if __name__ == "__main__":
    main()
