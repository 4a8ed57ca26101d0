# SPDX-License-Identifier: Apache-2.0
"""The command line and the client need nothing that only the operator needs."""

import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[4]
_BLOCKED = """
import importlib, pkgutil, sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked!r}:
            raise ModuleNotFoundError("No module named " + repr(name), name=name)

sys.meta_path.insert(0, Blocked())
import dtjob
for module in pkgutil.walk_packages(dtjob.__path__, "dtjob."):
    if not module.name.startswith(("dtjob.kube", "dtjob.cli.operator", "dtjob.__main__")):
        importlib.import_module(module.name)
from dtjob import Client
from dtjob.cli.main import main
sys.argv = ["dtjob", "operator"]
main()
"""


def test_every_module_but_the_operators_is_imported_without_its_packages() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = {name.split(">")[0].split("=")[0] for name in project["optional-dependencies"]["operator"]}
    assert needed == {"kopf", "prometheus_client"}
    assert not needed & {name.split(">")[0] for name in project["dependencies"]}
    command = [sys.executable, "-c", _BLOCKED.replace("{blocked!r}", repr(sorted(needed)))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("dtjob: the operator needs the Python module ")
    assert done.stderr.endswith("; install dtjob[operator]\n")
