# SPDX-License-Identifier: Apache-2.0
"""Draw the picture of a recovery: steps of training in which `kill -9` ends a worker, and then the chief.

    python -m benchmarks.operators.recovery_picture        # two minutes, on a quiet machine

Both sides train on this machine without Kubernetes, as in the scenario `local_recovery`, one after the other.
"""

import json
import time
from pathlib import Path
from typing import TypedDict

from benchmarks.operators.local_recovery import SIDES, Machine
from benchmarks.operators.node_bed import StepFile
from benchmarks.operators.recovery import START_SECONDS

ROOT = Path(__file__).resolve().parents[2]
PICTURE = ROOT / "docs" / "images" / "recovery.svg"
RECORD = ROOT / "benchmarks" / "results" / "recovery_picture.json"
STRATEGY = "MultiWorkerMirrored"
EVERY = 20
"""Steps between two checkpoints."""
SECONDS = 50.0
KILLS = ((12.0, "worker", 0), (30.0, "chief", 0))
"""When which task is killed, in seconds since the first checkpoint."""
LOOKS = {"dtjob": {"color": "#1668b8", "zorder": 3}, "tfjob": {"color": "#c2571a"}}
LABELS = {"dtjob": "dtjob", "tfjob": "the program by hand, started again as TFJob does"}


class Record(TypedDict):
    """One side: `kills` are seconds since the first checkpoint; `steps` are such seconds and the step done then."""

    kills: list[float]
    steps: list[tuple[float, int]]


def record(side: str) -> Record:
    """Train on one side, and kill. Raises RuntimeError if it does not begin to train."""
    with Machine() as bed:
        group = SIDES[side](STRATEGY, EVERY)
        group.start(bed)
        try:
            steps = StepFile(bed.directory)
            if not steps.wait_step(EVERY + 1, START_SECONDS):
                raise RuntimeError(f"{side} did not train: {group.problem()}")
            began = time.monotonic()
            kills = []
            for after, role, index in KILLS:
                time.sleep(max(0.0, began + after - time.monotonic()))
                at = group.kill(role, index, began + SECONDS)
                kills.extend([] if at is None else [round(at - began, 3)])
            time.sleep(max(0.0, began + SECONDS - time.monotonic()))
            notes = [(round(note.at - began, 3), note.step) for note in steps.notes()]
        finally:
            group.stop()
    return {"kills": kills, "steps": [(at, step) for at, step in notes if 0 <= at <= SECONDS]}


def draw(sides: dict[str, Record], path: Path) -> None:
    """The picture, as SVG. Raises ImportError without matplotlib."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "dtjob", "font.family": "sans-serif"}):
        figure = Figure(figsize=(7.2, 3.2), layout="constrained")
        axes = figure.subplots()
        for name, found in sides.items():
            first = found["steps"][0][1]
            axes.plot(
                *zip(*[(at, step - first) for at, step in found["steps"]], strict=True),
                label=LABELS[name],
                **LOOKS[name],
            )
        for (_, role, _), at in zip(KILLS, sides["dtjob"]["kills"], strict=True):
            axes.axvline(at, color="0.5", linestyle=":", linewidth=1)
            axes.annotate(f" kill -9 {role}", (at, 0.02), xycoords=("data", "axes fraction"), color="0.35", fontsize=9)
        axes.set(xlabel="seconds", ylabel="training step", xlim=(0, SECONDS), ylim=(0, None))
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(loc="upper left", frameon=False)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, format="svg", facecolor="white", metadata={"Date": None})


def main() -> None:
    """Measure, write the record and draw it."""
    sides = {name: record(name) for name in SIDES}
    RECORD.write_text(json.dumps({"when": time.strftime("%Y-%m-%d %H:%M"), "every": EVERY, "sides": sides}) + "\n")
    draw(sides, PICTURE)
    for name, found in sides.items():
        print(name, found["kills"], found["steps"][-1])


if __name__ == "__main__":
    main()
