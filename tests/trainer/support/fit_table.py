# SPDX-License-Identifier: Apache-2.0
"""The tables of docs/reference/fit.md: arguments of `Model.fit` and kinds of data under each strategy.

`make fit-table` runs every cell and writes the page. A case's docstring is the row's text.
"""

import ast
import pickle
import re
import sys
import tempfile
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tests.trainer.support import strategy_table
from tests.trainer.support.harness import PROGRAMS, ROOT, Cluster
from tests.trainer.support.one_device import PROGRAM, differences, reference
from tests.trainer.support.templates import RUNNER

PAGE = ROOT / "docs" / "reference" / "fit.md"
ARGUMENTS, DATA = PROGRAMS / "one_device_arguments.py", PROGRAMS / "one_device_data.py"
CLUSTERS = strategy_table.CLUSTERS | {
    "MultiWorkerMirrored": ({"worker": 2}, {}),
    "ParameterServer": ({"chief": 1, "worker": 1, "ps": 1}, {}),
}
"""Each strategy's tasks and options. With one worker, ParameterServer's steps come in their order."""
STRATEGIES = {"keras": tuple(CLUSTERS), "tf_keras": tuple(name for name in CLUSTERS if name != "TPU")}
"""Those of each package: docs/reference/strategies.md says why a TPU takes no tf_keras."""
KERAS_3_ALONE = {
    "argument_validation_split_of_sparse_tensors",
    "py_dataset",
    "generators",
    "ragged_and_sparse",
    "data_that_runs_out",
}
"""What tf_keras does not have, or of which its own `fit` takes other steps."""
EXAMPLES = 61
"""One more than full batches have, so that there are empty replicas."""
EXAMPLES_OF_TPU = 80
"""A TPU leaves out a last batch that is not full. As many batches as of the others."""

Verdict = Literal["same", "no effect", "beyond Keras", "refused"]


@dataclass(frozen=True)
class Case:
    """A row of a table: the name of a case of the program, what it shows of what."""

    name: str
    subjects: tuple[str, ...]
    """Arguments; none for a kind of data."""
    text: str


@dataclass(frozen=True)
class Cell:
    """What `fit` does there, and its own words for it: of a refusal, or in the log."""

    verdict: Verdict
    reason: str | None = None


Table = dict[tuple[str, str], dict[str, Cell]]
"""By package and case, then by strategy."""


def cases(package: str) -> list[Case]:
    """Every case that `package` has, in the program's order: arguments first. Nothing is imported for that."""
    found = []
    for file in (ARGUMENTS, DATA):
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.FunctionDef) and (marks := list(map(_mark, node.decorator_list))):
                (subjects,) = marks
                text = ast.get_docstring(node)
                assert text, f"{node.name} has no docstring, which {PAGE.name} shows"
                found.append(Case(node.name, subjects, text))
    return [case for case in found if package == "keras" or case.name not in KERAS_3_ALONE]


def run(directory: Path, strategy: str, package: str, chosen: Sequence[str] = ()) -> dict[str, Cell]:
    """Train every case, or those `chosen`, under `strategy` in one start of its tasks.

    Fails where numbers are not those of one device.
    """
    counts, options = CLUSTERS[strategy]
    names = ",".join(chosen or [case.name for case in cases(package)])
    examples = EXAMPLES_OF_TPU if strategy == "TPU" else EXAMPLES
    arguments = (f"--examples={examples}", f"--package={package}", f"--cases={names}", "--tell")
    runner = (str(PROGRAMS / "tpu_stand_in.py"), "mirrored") if strategy == "TPU" else RUNNER
    out = directory / "out.pickle"
    with Cluster(
        directory, strategy, counts, PROGRAM, f"--out={out}", *arguments, options=options, runner=runner
    ) as cluster:
        cluster.start()
        cluster.expect_success(*(["chief-0"] if strategy == "ParameterServer" else cluster.tasks))
    found, by_keras = pickle.loads(out.read_bytes()), reference(*arguments)
    assert set(found) == set(names.split(","))
    wrong: list[str] = []
    cells = {name: _cell(name, told, by_keras[name], wrong) for name, told in found.items()}
    assert not wrong, "\n".join(wrong)
    return cells


def render(table: Table) -> str:
    """Both packages' tables and the reasons that they number, as Markdown between the marks."""
    numbers: dict[str, int] = {}
    parts = []
    for package, title in strategy_table.PACKAGES.items():
        for kind, head in (("Arguments", ["argument", "what is given"]), ("Kinds of data", ["x, validation_data"])):
            rows = [case for case in cases(package) if bool(case.subjects) == (kind == "Arguments")]
            lines = [[*head, *STRATEGIES[package]], ["---"] * (len(head) + len(STRATEGIES[package]))]
            for case in rows:
                cells = table.get((package, case.name), {})
                texts = [_text(cells[name], numbers) if name in cells else "" for name in STRATEGIES[package]]
                subjects = [", ".join(f"`{each}`" for each in case.subjects)] if case.subjects else []
                lines.append([*subjects, case.text, *texts])
            parts += [f"## {kind}, {title}", "", *("| " + " | ".join(line) + " |" for line in lines), ""]
    notes = [
        textwrap.fill(f"{number}. {reason}", 118, subsequent_indent="   ", break_long_words=False)
        for reason, number in numbers.items()
    ]
    return "\n".join([BEGIN, "", *parts, *notes, "", END])


def parse(page: str) -> Table:
    """The tables of a page that `render` has made part of, by the texts of the cases there are now.

    Raises ValueError where there are no marks.
    """
    _, _, rest = page.partition(BEGIN)
    body, end, _ = rest.partition(END)
    if not end:
        raise ValueError(
            f"{PAGE.relative_to(ROOT)} has no tables between {BEGIN!r} and {END!r}; write it with `make fit-table`"
        )
    parts = re.split(r"^(\d+)\. ", body, flags=re.MULTILINE)
    reasons = {number: " ".join(text.split()) for number, text in zip(parts[1::2], parts[2::2], strict=True)}
    table: Table = {}
    packages = {title: package for package, title in strategy_table.PACKAGES.items()}
    for section in re.split(r"^## ", parts[0], flags=re.MULTILINE)[1:]:
        package = packages[section.splitlines()[0].partition(", ")[2]]
        known = {(", ".join(f"`{each}`" for each in case.subjects), case.text): case.name for case in cases(package)}
        names, _, *rows = (_split(line) for line in section.splitlines() if line.startswith("|"))
        strategies = names[names.index("Default") :]
        for row in rows:
            *subject, text = row[: -len(strategies)]
            name = known.get((subject[0] if subject else "", text), f"unknown: {text}")
            found = {key: _read(cell, reasons) for key, cell in zip(strategies, row[-len(strategies) :], strict=True)}
            table[package, name] = {key: cell for key, cell in found.items() if cell is not None}
    return table


BEGIN, END = "<!-- the tables: made by `make fit-table` -->", "<!-- end of the tables -->"


def _mark(decorator: ast.expr) -> tuple[str, ...]:
    """The arguments that a case shows: `@uses("epochs")`, or none of `@case`."""
    if isinstance(decorator, ast.Call):
        return tuple(str(each.value) for each in decorator.args if isinstance(each, ast.Constant))
    return ()


def _cell(name: str, told: dict[str, Any], by_keras: dict[str, Any], wrong: list[str]) -> Cell:
    """What was `told` of case `name`, beside what Keras came to; adds to `wrong` where the numbers differ."""
    if "refused" in told:
        return Cell("refused", told["refused"])
    if "refused" in by_keras:
        return Cell("beyond Keras", None)
    wrong += differences(name, by_keras["found"], told["found"])
    if told["without effect"]:
        return Cell("no effect", told["without effect"][0].partition(": ")[2])
    return Cell("same")


def _text(cell: Cell, numbers: dict[str, int]) -> str:
    if cell.reason is None:
        return cell.verdict
    return f"{cell.verdict} ({numbers.setdefault(cell.reason, len(numbers) + 1)})"


def _read(text: str, reasons: dict[str, str]) -> Cell | None:
    verdict, _, number = text.rstrip(")").partition(" (")
    for known in Verdict.__args__:  # type: ignore[attr-defined]
        if verdict == known:
            return Cell(known, reasons[number] if number else None)
    return None


def _split(line: str) -> list[str]:
    return [part.strip() for part in line.strip("|").split("|")]


def main(strategies: list[str]) -> None:
    """Run every cell, or those of some strategies, and write the page."""
    for package, names in STRATEGIES.items():
        for strategy in (name for name in names if not strategies or name in strategies):
            with tempfile.TemporaryDirectory() as directory:
                cells = run(Path(directory), strategy, package)
            page = PAGE.read_text()
            table = parse(page)
            for name, cell in cells.items():
                table.setdefault((package, name), {})[strategy] = cell
            before, _, rest = page.partition(BEGIN)
            PAGE.write_text(before + render(table) + rest.partition(END)[2])


if __name__ == "__main__":
    main(sys.argv[1:])
