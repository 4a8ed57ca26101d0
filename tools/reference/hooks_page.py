# SPDX-License-Identifier: Apache-2.0
"""The page of all functions that dtjob replaces in a training process."""

from collections.abc import Iterator

from dtjob_trainer.frameworks.hooks import SEEN, Hook
from dtjob_trainer.frameworks.table import HOOKS

HEAD = """# Functions that dtjob replaces

`make reference` writes this page from `trainer_image/dtjob_trainer/frameworks/`, where each row is a `Hook`.
[What dtjob changes in your process](../training/integration.md) is the page for users.

With `program.integration: None`, dtjob replaces nothing before the script calls dtjob. A row applies only to a process
that needs it: most depend on the strategy. If a version of a package lacks a function, the last column says what dtjob
cannot do. *Error* means that a process that needs the function ends, and *warning* that a line in the log says so. Both
name the versions to use.
"""
LASTS = {
    "process": "",
    "training": " While training runs.",
    "trace": " While a step is traced.",
    "call": " While one call runs.",
}
MOST = 2
"""Targets of one hook that are shown."""


def page() -> str:
    """The page, with a table for each package."""
    return HEAD + "".join(
        "\n".join(["", f"## {title}", "", "| function | what it does in a job | if it is gone |", "|---|---|---|"])
        + "".join(f"\n{_row(hook)}" for hook in HOOKS.values() if hook.package == package)
        + "\n"
        for package, title in SEEN.items()
    )


def _row(hook: Hook) -> str:
    names = [f"`{name}`" for name in dict.fromkeys(_shown(hook))]
    more = f" and {len(names) - MOST} more" if len(names) > MOST else ""
    gone = f"{'Error' if hook.ends else 'Warning'}: dtjob cannot {hook.gone}."
    return f"| {', '.join(names[:MOST])}{more} | {hook.does}{LASTS[hook.lasts]} | {gone} |"


def _shown(hook: Hook) -> Iterator[str]:
    for target in hook.targets:
        name = target.replace(":", ".")
        yield name.replace("tensorflow.", "tf.", 1) if name.count(".python.") == 0 else name
