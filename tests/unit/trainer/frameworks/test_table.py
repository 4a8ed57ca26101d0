# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.frameworks.table: a process that does not use a hook does not need its target."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from dtjob_trainer.frameworks.hooks import SEEN
from dtjob_trainer.frameworks.table import HOOKS

ROOT = Path(__file__).parents[4]
pytest.importorskip("tensorflow")
WITHOUT_NAMES = """
import inspect, pkgutil, sys
import keras, tensorflow as tf
from importlib import import_module
from dtjob_trainer.frameworks import hooks
from dtjob_trainer.frameworks.table import HOOKS

targets = {target for hook in HOOKS.values() for target in hook.targets if hook.package in ("keras", "tensorflow")}
private = {each for each in targets if ".src." in each or ".python." in each or "._" in each}
for target in sorted(private):
    owner, name = hooks.resolved(target, True) or (None, "")
    kinds = owner.__mro__ if isinstance(owner, type) else [owner]
    for kind in kinds:
        if kind is not object and name in getattr(kind, "__dict__", ()):
            delattr(kind, name)
del tf.__internal__.distribute.ShardedVariable
package = import_module("dtjob_trainer")
for module in pkgutil.walk_packages(package.__path__, "dtjob_trainer."):
    if "tf_keras" not in module.name and not module.name.endswith("__main__"):
        import_module(module.name)
print(len(private))
"""


def test_no_missing_name_ends_an_import() -> None:
    run = subprocess.run([sys.executable, "-c", WITHOUT_NAMES], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert int(run.stdout) > 20


def test_the_versions_to_use_are_those_that_the_package_allows() -> None:
    project = tomllib.loads((ROOT / "trainer_image" / "pyproject.toml").read_text())["project"]
    (keras,) = (each for each in project["dependencies"] if each.startswith("keras"))
    (tensorflow,) = project["optional-dependencies"]["cpu"]
    for package, requirement in (("keras", keras), ("tensorflow", tensorflow)):
        (major, first), (_, after) = re.findall(r"(\d+)\.(\d+)", requirement)
        assert re.findall(r"\d+\.\d+", SEEN[package]) == [f"{major}.{first}", f"{major}.{int(after) - 1}"]


def test_each_hook_of_the_page_is_used() -> None:
    texts = [file.read_text() for file in (ROOT / "trainer_image").rglob("*.py")]
    names = {name.split(".")[1] for name in HOOKS}
    unused = {name for name in names if not any(re.search(rf"\b{name}\b(?! = )(?!,.* = )", text) for text in texts)}
    assert not unused
