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
LASTS = {"process": "always", "training": "in training", "trace": "in a trace", "call": "in a call"}
MOST = 2
"""Targets of one hook that are shown."""


def page() -> str:
    """The page, with a table for each package."""
    return HEAD + "".join(
        "\n".join(
            ["", f"## {title}", "", "| function | what it does in a job | when | if it is gone |", "|---|---|---|---|"]
        )
        + "".join(f"\n{_row(hook)}" for hook in HOOKS.values() if hook.package == package)
        + "\n"
        for package, title in SEEN.items()
    )


def _row(hook: Hook) -> str:
    names = [f"`{name}`" for name in dict.fromkeys(_shown(hook))]
    more = f" and {len(names) - MOST} more" if len(names) > MOST else ""
    gone = f"{'Error' if hook.ends else 'Warning'}: dtjob cannot {hook.gone}."
    asked = f" If {hook.package} does not call it {hook.expected}, the job ends." if hook.expected else ""
    return f"| {', '.join(names[:MOST])}{more} | {hook.does}{asked} | {LASTS[hook.lasts]} | {gone} |"


def _shown(hook: Hook) -> Iterator[str]:
    for target in hook.targets:
        name = target.replace(":", ".")
        is_public = name.startswith("tensorflow.") and not name.startswith("tensorflow.python.")
        yield f"tf.{name.removeprefix('tensorflow.')}" if is_public else name
