# SPDX-License-Identifier: Apache-2.0
"""The command line: it begins quickly, and says what it has."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dtjob.cli import main
from dtjob.cli.first_job import write
from tests.unit.operator.cli.convert.tfjobs import replica, tfjob

STARTED = """
import inspect, sys
from pydantic import BaseModel

def refuse(*_, **__):
    raise AssertionError("this is for the definition, and takes a fifth of the time of a command")

inspect.getsource = inspect.getsourcelines = BaseModel.model_json_schema = refuse
from dtjob.cli.main import main
try:
    main()
finally:
    print(*sys.modules, sep="\\n", file=sys.stderr)
"""
SLOW = ("aiohttp", "kopf", "kubernetes", "rich")
OURS = ("dtjob.kube", "dtjob.local.engine", "dtjob.plan.seen", "dtjob.api.status")
NO_CLUSTER = (*SLOW, *OURS, "asyncio", "ssl", "dtjob.client.connection")
NO_MANIFEST = (*SLOW, *OURS, "dtjob.api.job", "dtjob.crd")


@pytest.mark.parametrize(
    ("words", "unneeded"),
    [
        ("validate job.yaml", (*NO_CLUSTER, "dtjob.cli.commands.watching", "dtjob.objects.kueue")),
        ("explain job.yaml", (*NO_CLUSTER, "dtjob.cli.commands.watching")),
        ("convert tfjob.yaml", (*NO_CLUSTER, "dtjob.cli.commands.watching")),
        ("submit train.py --dry-run", (*NO_CLUSTER, "dtjob.objects.kueue", "dtjob.manifests.stream")),
        ("run train.py --dry-run", (*NO_CLUSTER, "dtjob.cli.commands.submitting")),
        ("--version", (*NO_CLUSTER, *NO_MANIFEST, "yaml", "dtjob.objects")),
        ("init new", (*NO_CLUSTER, *NO_MANIFEST, "yaml", "dtjob.objects")),
        *((f"{name} --kubeconfig none", NO_MANIFEST) for name in ("list", "doctor")),
        *((f"{name} digits --kubeconfig none", NO_MANIFEST) for name in ("status", "fetch", "delete", "wait")),
    ],
)
def test_a_command_imports_nothing_that_it_does_not_need(tmp_path: Path, words: str, unneeded: tuple[str, ...]) -> None:
    """What a command takes to begin is what it imports: no model makes a schema, and no other command is loaded."""
    write(tmp_path, "digits")
    (tmp_path / "tfjob.yaml").write_text(json.dumps(tfjob({"Worker": replica()})))
    command = [sys.executable, "-c", STARTED, *words.split()]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert "dtjob.cli.main" in done.stderr.splitlines(), done.stderr
    assert "AssertionError" not in done.stderr, done.stderr
    imported = done.stderr.splitlines()
    assert [one for one in unneeded if any(f"{name}.".startswith(f"{one}.") for name in imported)] == []
    assert done.returncode == (2 if "none" in words else 0)


@pytest.mark.parametrize(
    ("words", "redirected", "code", "said"),
    [
        ("explain job.yaml", ">&-", 0, ""),
        ("validate job.yaml", ">&- 2>&-", 0, ""),
        ("validate -", "<&-", 2, "dtjob: -: is empty; give one DistributedTrainingJob\n"),
        ("version", "<&- >&- 2>&-", 0, ""),
        ("explain none", "2>&-", 2, ""),
    ],
)
def test_a_command_works_with_closed_streams(tmp_path: Path, words: str, redirected: str, code: int, said: str) -> None:
    write(tmp_path, "digits")
    line = f"{sys.executable} -m dtjob {words} {redirected}"
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (code, said)


@pytest.mark.parametrize("words", ["run --help", "validate job.yaml", "submit train.py --dry-run"])
@pytest.mark.parametrize(
    "environ",
    [{"PYTHONIOENCODING": "latin-1"}, {"LC_ALL": "POSIX", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}],
    ids=["output", "locale"],
)
def test_a_command_works_where_the_locale_has_another_encoding(
    tmp_path: Path, words: str, environ: dict[str, str]
) -> None:
    write(tmp_path, "digits")
    for file in ("job.yaml", "train.py"):
        with (tmp_path / file).open("a", encoding="utf-8") as text:
            text.write("# Zürich …\n")
    command = [sys.executable, "-m", "dtjob", *words.split()]
    done = subprocess.run(command, capture_output=True, check=False, cwd=tmp_path, env={**os.environ, **environ})
    assert (done.returncode, b"Error" in done.stderr) == (0, False), done.stderr


def test_standard_input_that_is_no_text_is_one_sentence() -> None:
    environ = {**os.environ, "PYTHONIOENCODING": "utf-8:strict"}
    command = [sys.executable, "-m", "dtjob", "validate", "-"]
    done = subprocess.run(command, input=b"a: \xff", capture_output=True, check=False, env=environ)
    assert (done.returncode, done.stderr.count(b"\n")) == (2, 1)
    assert b"is not a text file in UTF-8" in done.stderr


def test_the_usage_of_the_plugin_has_the_plugins_name(dtjob, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["/usr/bin/kubectl-dtjob", "top", "-h"])
    with pytest.raises(SystemExit):
        main.main()
    assert "Usage: kubectl dtjob top" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "at", "completed"),
    [
        ("dtjob su", "1", ["submit", "suspend"]),
        ("dtjob ge", "1", []),
        ("dtjob submit --claim", "2", ["--claim", "--claim-size"]),
    ],
)
def test_a_shell_completes_commands_and_options(words: str, at: str, completed: list[str]) -> None:
    environ = {**os.environ, "COMP_WORDS": words, "COMP_CWORD": at, "_DTJOB_COMPLETE": "complete_bash"}
    command = [sys.executable, "-m", "dtjob"]
    assert subprocess.run(command, env=environ, capture_output=True, text=True).stdout.split() == completed
