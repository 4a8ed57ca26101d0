# SPDX-License-Identifier: Apache-2.0
"""The table of docs/reference/strategies.md: which loop works under which strategy with which Keras.

`make table` runs every cell and writes the page.
"""

import json
import re
import tempfile
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.trainer.support.harness import PROGRAMS, ROOT, Cluster

PAGE = ROOT / "docs" / "reference" / "strategies.md"
BEGIN, END = "<!-- the table: made by `make table` -->", "<!-- end of the table -->"
PACKAGES = {"keras": "Keras 3", "tf_keras": "tf_keras"}
LOOPS = ("dt.fit", "dt.fit, own train_step", "dt.train", "Model.fit")
TWO = {"logicalCPUs": 2}
CLUSTERS: dict[str, tuple[dict[str, int], dict[str, int]]] = {
    "Default": ({"chief": 1}, {}),
    "OneDevice": ({"chief": 1}, {}),
    "Mirrored": ({"chief": 1}, TWO),
    "CentralStorage": ({"chief": 1}, TWO),
    "MultiWorkerMirrored": ({"chief": 1, "worker": 1}, {}),
    "ParameterServer": ({"chief": 1, "worker": 2, "ps": 1}, {}),
    "TPU": ({"chief": 1}, TWO),
}
"""Each strategy's tasks and options."""
REASON_CHARACTERS = 300
"""Of a reason's first line; nobody reads more in a table."""

Place = tuple[str, str]
"""Loop and package."""


@dataclass(frozen=True)
class Cell:
    """What a place of the table says: whether the loop works, and why not at all or not as it was called first."""

    works: bool
    reason: str | None = None


@dataclass(frozen=True)
class Numbers:
    """What a loop that works came to: the loss that it reported last; loss and accuracy on held-out examples."""

    reported: float
    loss: float
    accuracy: float


Row = dict[Place, tuple[Cell, Numbers | None]]
Table = dict[str, dict[Place, Cell]]
"""By strategy."""


def run(directory: Path, strategy: str, **env: str) -> Row:
    """Run every loop with both packages under `strategy`, in one start of its tasks, with these variables."""
    counts, options = CLUSTERS[strategy]
    stand_in = (str(PROGRAMS / "tpu_stand_in.py"), "mirrored")
    runner = stand_in if strategy == "TPU" else ("-m", "dtjob_trainer.run")
    with Cluster(directory, strategy, counts, "every_loop.py", options=options, runner=runner, env=env) as cluster:
        cluster.start()
        cluster.expect_success(*(["chief-0"] if strategy == "ParameterServer" else cluster.tasks))
        lines = cluster["chief-0"].output().splitlines()
    told = [json.loads(line.removeprefix("cell ")) for line in lines if line.startswith("cell {")]
    row = {(each["loop"], each["package"]): (_cell(each), _numbers(each)) for each in told}
    assert set(row) == {(loop, package) for loop in LOOPS for package in PACKAGES}, "\n".join(lines)
    return row


def check(strategy: str, row: Row, undistributed: Row) -> None:
    """Fail where a cell of `row` works, but not as the undistributed run does (the accuracy, under ParameterServer)."""
    _, expected = undistributed["Model.fit", "keras"]
    assert expected is not None
    assert expected.accuracy > 0.85
    for (loop, package), (_, found) in row.items():
        where = f"{strategy}, {loop}, {package}"
        if found is None:
            continue
        if strategy == "ParameterServer":
            assert abs(found.accuracy - expected.accuracy) < 0.06, where
            continue
        assert abs(found.loss / expected.loss - 1) < 1e-3, where
        _, same_loop = undistributed[loop, package]
        if same_loop is not None and "own" not in loop:  # an own train_step gives its replica's share
            assert abs(found.reported / same_loop.reported - 1) < 1e-3, where


def render(table: Table) -> str:
    """The table and the reasons that it numbers, as Markdown between the marks."""
    numbers: dict[str, int] = {}

    def text(cell: Cell) -> str:
        verdict = "works" if cell.works else "no"
        return verdict if cell.reason is None else f"{verdict} ({numbers.setdefault(cell.reason, len(numbers) + 1)})"

    head = ["strategy", "package", *(f"`{name}`" for name in LOOPS)]
    lines = [head, ["---"] * len(head)]
    for strategy, cells in table.items():
        for package, title in PACKAGES.items():
            lines.append([strategy, title, *(text(cells[loop, package]) for loop in LOOPS)])
    rows = ["| " + " | ".join(line) + " |" for line in lines]
    notes = [
        textwrap.fill(f"{number}. {reason}", 118, subsequent_indent="   ", break_long_words=False)
        for reason, number in numbers.items()
    ]
    return "\n".join([BEGIN, "", *rows, "", *notes, *([""] if notes else []), END])


def parse(page: str) -> Table:
    """The table of a page that `render` has made part of. Raises ValueError where the marks are not there."""
    _, _, rest = page.partition(BEGIN)
    body, end, _ = rest.partition(END)
    if not end:
        raise ValueError(
            f"{PAGE.relative_to(ROOT)} has no table between {BEGIN!r} and {END!r}; write it with `make table`"
        )
    notes = re.split(r"^(\d+)\. ", body, flags=re.MULTILINE)[1:]
    reasons = {number: " ".join(text.split()) for number, text in zip(notes[::2], notes[1::2], strict=True)}
    titles = {title: package for package, title in PACKAGES.items()}
    table: Table = {}
    for line in [line for line in body.splitlines() if line.startswith("|")][2:]:
        strategy, title, *texts = (part.strip() for part in line.strip("|").split("|"))
        for loop, text in zip(LOOPS, texts, strict=True):
            verdict, _, number = text.rstrip(")").partition(" (")
            table.setdefault(strategy, {})[loop, titles[title]] = Cell(verdict == "works", reasons.get(number))
    return table


def _cell(told: Mapping[str, Any]) -> Cell:
    """The reason is why the first way to call the loop was refused."""
    reason = None
    if told["refusals"]:
        package, message = told["refusals"][0]
        first = " ".join(message.strip().splitlines()[0].replace("|", "/").split())
        ours = package == "dtjob_trainer"
        reason = textwrap.shorten(first if ours else f"{package}: {first}", REASON_CHARACTERS, placeholder=" …")
    return Cell("loss" in told, reason)


def _numbers(told: Mapping[str, Any]) -> Numbers | None:
    return Numbers(told["reported"], told["loss"], told["accuracy"]) if "loss" in told else None


def main() -> None:
    """Run every cell and write the page."""
    rows: dict[str, Row] = {}
    for strategy in CLUSTERS:
        with tempfile.TemporaryDirectory() as directory:
            rows[strategy] = run(Path(directory), strategy)
        check(strategy, rows[strategy], rows["Default"])
    table = {name: {place: cell for place, (cell, _) in row.items()} for name, row in rows.items()}
    page = PAGE.read_text()
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(before + render(table) + after)


if __name__ == "__main__":
    main()
