# SPDX-License-Identifier: Apache-2.0
"""Which test runs a command of a page, and the files and names that the commands of pages need.

- `unit`: it needs no cluster. `test_page_runs.py` runs it.
- `cluster`: `tests/cluster/test_page_commands.py` and `test_page_helm.py` run it against a real API server.
- NOT_RUN: no test can run it as it stands, for the reason that stands beside it.
"""

import re
import shlex
from pathlib import Path
from typing import Any

import typer.main
from typer.exceptions import Exit, TyperException

from dtjob.cli.main import app
from tests.unit.page_commands import PAGES, ROOT, blocks, marked, of_blocks, of_text

DTJOB: Any = typer.main.get_command(app())
OFFLINE = ("validate", "explain", "convert", "init", "version", "run", "submit")
"""Commands of dtjob that need no cluster, or have a form that needs none."""
MISSING = "Missing parameter"
"""How Typer begins its message where an argument is left out."""
NAMES = {
    "JOB": "digits",
    "NAME": "digits",
    "FILE": "job.yaml",
    "DIR": "first",
    "POD": "digits-chief-0-0",
    "N": "5",
    "REVISION": "1",
}
"""What stands for the words that a reader replaces."""

_NO_NODE = "it needs a real node: tests/e2e/ has one"
_NO_BUILDER = "it needs Docker or kind; `make kind` builds and loads the same images"
_TFJOB = "it needs Kubeflow's operator and its TFJobs, which only the benchmarks install"
_RUNS = "it runs until a signal; "
NOT_RUN = {
    "kind create cluster": _NO_BUILDER,
    "kind load image-archive ~/.cache/dtjob/images/$i.tar": _NO_BUILDER,
    "kind load image-archive ~/.cache/dtjob/images/operator.tar": _NO_BUILDER,
    "docker build -t dtjob-operator:dev .": _NO_BUILDER,
    "docker build -f trainer_image/Dockerfile -t dtjob-trainer:dev .": _NO_BUILDER,
    "docker load -i ~/.cache/dtjob/images/operator.tar": _NO_BUILDER,
    "ctr -n k8s.io images import ~/.cache/dtjob/images/operator.tar": _NO_NODE,
    "kubeconform -strict -schema-location default -schema-location "
    "crds/json-schema/{{.ResourceKind}}_{{.ResourceAPIVersion}}.json job.yaml": "a program that no package here has; "
    "tests/unit/tools/test_json_schema.py checks manifests with that schema",
    "dtjob operator": _RUNS + "each test of tests/cluster/ with an operator runs it",
    "dtjob exec digits -- nvidia-smi": "it needs a GPU; tests/cluster/test_streams_of_pods.py runs another command",
    "dtjob exec digits --task worker-1 -it -- bash": "it needs a terminal: tests/unit/operator/client/test_exec.py",
    "dtjob --install-completion": "it writes into the files of the user's shell",
    "dtjob wait JOB --for Suspended": "no test suspends the job of the pages: "
    "tests/cluster/test_steering.py waits for it",
    **dict.fromkeys(
        ("dtjob ui", "dtjob ui --all-namespaces", "dtjob run examples/digits.yaml --ui"),
        _RUNS + "tests/browser/ runs it",
    ),
    "dtjob tensorboard JOB": _RUNS + "tests/cluster/test_streams_of_pods.py runs it and ends it",
    "helm test dtjob -n dtjob-system": "its pod must run: tests/cluster/test_chart.py and tests/e2e/ run it",
    "kubectl exec -it digits-worker-0-0 -c tensorflow -- bash": "it needs a terminal. " + _NO_NODE,
    "kubectl exec -it look -c tensorflow -- bash": "it needs a terminal. " + _NO_NODE,
    "kubectl debug -it POD --image=busybox --target=tensorflow --profile=restricted": "it needs a terminal. "
    + _NO_NODE,
    "kubectl cp look:/checkpoints/model.keras model.keras": "it runs tar in a container. " + _NO_NODE,
    "kubectl top pod": "it needs a metrics server",
    "kubectl -n dtjob-system logs deployment/dtjob": "the operator's pod must run: " + _NO_NODE,
    "kubectl get tfjobs -o yaml": _TFJOB,
    "kubectl delete tfjob digits": _TFJOB,
    "kubectl get experiment search -o jsonpath={.status.currentOptimalTrial}": "it needs Katib",
}
"""Commands of pages, each with the reason why no test runs it as it stands."""


def text(words: list[str]) -> str:
    """The command in one line."""
    return " ".join(words)


def is_form(words: list[str]) -> bool:
    """Whether the text only names this command: what it must have, such as the name of a job, is left out."""
    program, *rest = words
    if program == "dtjob":
        return _lacks_arguments(rest)
    if program == "helm":
        return len(rest) == 1
    if program == "kubectl":
        named = [word for word in rest if not word.startswith("-")]
        return len(named) == 1 or (named[0] in ("delete", "describe") and len(named) == 2)
    return (program == "python" and rest[0] != "-m") or rest[:2] == ["-m", "module"]


def _lacks_arguments(words: list[str]) -> bool:
    if words[0] == "COMMAND" or words[0] not in DTJOB.commands:
        return words[0] == "COMMAND"
    try:
        DTJOB.commands[words[0]].make_context(words[0], filled(words[1:]))
    except Exit:  # --help
        return False
    except TyperException as error:
        return str(error).startswith(MISSING)
    return False


def filled(words: list[str]) -> list[str]:
    """The words with something in place of those that a reader replaces."""
    return [re.sub(r"\b[A-Z]+\b", lambda found: NAMES.get(found[0], found[0]), word) for word in words]


def commands_of(page: Path) -> list[list[str]]:
    """Each whole command of the page once, in its order: those of blocks, and those in the text."""
    found = {text(words): words for words in of_blocks(page)}
    found |= {text(words): words for words in of_text(page) if text(words) not in found and not is_form(words)}
    return list(found.values())


def tier(words: list[str]) -> str:
    """`unit`, `cluster`, or empty where it is in NOT_RUN."""
    if text(words) in NOT_RUN:
        return ""
    if words[0] in ("make", "python") or (words[0] == "dtjob" and (words[1] in OFFLINE or words[-1] == "--help")):
        return "unit"
    return "cluster" if words[0] in ("dtjob", "helm", "kubectl") else ""


def everywhere(wanted: str) -> dict[str, list[str]]:
    """All whole commands of the pages of this tier."""
    return {text(words): words for page in PAGES for words in commands_of(page) if tier(words) == wanted}


def write_files(page: Path, folder: Path) -> None:
    """The files that the commands of the page name: its own, and for others examples of this repository."""
    (folder / "examples").symlink_to(ROOT / "examples")
    (folder / "crds").symlink_to(ROOT / "crds")
    (folder / "digits.npz").symlink_to(ROOT / "examples" / "digits.npz")
    tfjob = marked(ROOT / "docs" / "migrate" / "tfjob.md", "tfjob")[""]
    whole = [code for language, code in blocks(page) if language == "python" and code.startswith('"""')]
    script = whole[0] if whole else (ROOT / "examples" / "plain.py").read_text()
    secrets = {"ca.crt": "a certificate", "key.json": "{}"}
    files = secrets | {
        "job.yaml": (ROOT / "examples" / "digits.yaml").read_text(),
        "tfjob.yaml": tfjob,
        **marked(page, "file: "),
    }
    for words in of_blocks(page):
        for name in re.findall(r"(?<![/\w])\w+\.py\b", shlex.join(words)):
            files.setdefault(name, script)
    files.setdefault("train.py", script)
    for name, content in files.items():
        (folder / name).write_text(content)
