# SPDX-License-Identifier: Apache-2.0
"""A user's mistake is one sentence and exit code 2, whichever command it was made with."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dtjob.cli import main
from dtjob.cli.first_job import write
from dtjob.client import patience
from tests.unit.operator.client.api_server import ApiServer, serving
from tests.unit.operator.client.verbs.jobs import JOBS, stored

OF_A_JOB = {
    **dict.fromkeys(("status", "logs", "wait", "top", "suspend", "resume", "restart", "delete"), ()),
    **dict.fromkeys(("fetch", "tensorboard", "debug-bundle", "events"), ()),
    "scale": ("2",),
    "exec": ("ls",),
}
"""Commands whose first argument is a job, and what follows it."""
OF_A_CLUSTER = {
    **{name: ("digits", *more) for name, more in OF_A_JOB.items()},
    "list": (),
    "ui": (),
    "doctor": (),
    "submit": ("train.py",),
    "explain": ("job.yaml", "--cluster"),
}
OF_FILES = ("validate", "convert", "explain", "run", "submit")


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ApiServer]:
    """A cluster without objects, and a directory with files that nobody can use."""
    monkeypatch.chdir(tmp_path)
    write(Path(), "digits")
    for name, content in {
        "broken.yaml": b"a: [",
        "empty.yaml": b"",
        "binary.yaml": b"\xff\xfe",
        "words": b"words",
    }.items():
        Path(name).write_bytes(content)
    for name in ("folder", "folder.py", "folder.yaml"):
        Path(name).mkdir()
    yield from serving()


def is_one_sentence(code: int, out: str, err: str, wanted: int = main.BAD_INPUT) -> bool:
    """With the name of the program."""
    lines = err.splitlines()
    return code == wanted and not out and len(lines) == 1 and lines[0].startswith("dtjob: ")


@pytest.mark.parametrize("command", OF_A_CLUSTER)
def test_a_cluster_that_cannot_be_asked_is_one_sentence(dtjob, server: ApiServer, command: str) -> None:
    good = server.kubeconfig(Path()).read_text()
    changes = {
        "nobody-listens": (server.url, "http://127.0.0.1:1"),
        "no-port": (server.url, "http://127.0.0.1:port"),
        "no-url": (server.url, "127.0.0.1"),
        "no-cluster": ("cluster: c\n", "cluster: other\n"),
        "no-context": ("current-context: x", "current-context: other"),
        "no-authority": ("server:", "certificate-authority: none\n    server:"),
        "no-yaml": ("clusters:", "clusters: ["),
        "a-list": (good, "[1]"),
    }
    for name, (before, after) in changes.items():
        assert before in good, name
        text = good.replace(before, after).replace("http://", "https://" if name == "no-authority" else "http://")
        Path(name).write_text(text)
    for file in (*changes, "missing", "folder"):
        said = dtjob(command, *OF_A_CLUSTER[command], "--kubeconfig", file)
        wanted = main.NOT_REACHED if file == "nobody-listens" else main.BAD_INPUT
        assert is_one_sentence(*said, wanted), (file, said)
    for options in (["--context", "other"], ["-n", "a/b"], ["-n", "A b"], ["--fast"]):
        said = dtjob(command, *OF_A_CLUSTER[command], "--kubeconfig", "kubeconfig", *options)
        assert is_one_sentence(*said), (options, said)


@pytest.mark.parametrize("code", [401, 403, 404, 500])
def test_a_refusal_of_the_api_server_is_one_sentence(
    dtjob, server: ApiServer, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "CALL_SECONDS", 0.0)
    refusal = {"kind": "Status", "reason": "No", "message": "you may\nnot"}
    for method in ("GET", "POST", "PATCH", "DELETE"):
        for path in (JOBS, f"{JOBS}/digits", "/api/v1/namespaces/team/configmaps", "/api/v1/namespaces/team/events"):
            server.answer(f"{method} {path}", refusal, code=code)
    server.answer("GET /version", refusal, code=code)
    server.answer("GET /apis/apps/v1/deployments", refusal, code=code)
    for command, arguments in OF_A_CLUSTER.items():
        if (command, code) == ("explain", 403):  # it explains without the defaults of the cluster, and says so
            continue
        if code == 500 and command in ("wait", "top"):  # they wait until it passes
            continue
        said = dtjob(command, *arguments, "--kubeconfig", server.kubeconfig(Path()))
        assert is_one_sentence(*said, main.NOT_REACHED if code == 500 else main.REFUSED), (command, said)


def test_an_answer_of_another_server_is_one_sentence(dtjob, server: ApiServer) -> None:
    server.answer(f"GET {JOBS}", b"<html>log in first</html>")
    said = dtjob("list", "--kubeconfig", server.kubeconfig(Path()))
    assert is_one_sentence(*said, main.NOT_REACHED), said
    assert "does not answer as an API server does" in said[2]


@pytest.mark.parametrize("command", OF_A_JOB)
def test_words_that_are_no_names_are_never_asked_for(dtjob, server: ApiServer, command: str) -> None:
    server.answer("GET /api/v1/namespaces/team/events", {"items": [], "metadata": {}})
    for name in ("", "..", "a/b", "A", "a b\n", "a?watch=true", "x" * 300):
        said = dtjob(command, name, *OF_A_JOB[command], "--kubeconfig", server.kubeconfig(Path()))
        assert is_one_sentence(*said), said
        assert "is no name" in said[2]
    assert not [path for method, path, _ in server.asked if method != "GET" or JOBS in path]


@pytest.mark.parametrize("command", OF_FILES)
def test_a_file_that_cannot_be_read_is_one_sentence(dtjob, server: ApiServer, command: str) -> None:
    options = ("--kubeconfig", server.kubeconfig(Path())) if command == "submit" else ()
    for file in ("broken.yaml", "empty.yaml", "binary.yaml", "words", "folder", "folder.yaml", "none.yaml", "none.py"):
        said = dtjob(command, file, *options)
        assert is_one_sentence(*said), said
        assert file in said[2]


@pytest.mark.parametrize(
    "arguments",
    [
        ["init", "words"],
        ["init", "words/below"],
        ["init", "demo", "--name", "A_b"],
        ["debug-bundle", "digits", "-o", "folder"],
        ["debug-bundle", "digits", "-o", "none/file"],
        ["submit", "train.py", "--source", "none"],
        ["submit", "train.py", "--source", "words"],
        ["submit", "train.py", "--source", "folder"],
        ["submit", "train.py", "--requirements", "folder"],
        ["submit", "train.py", "--name", "A_b"],
        ["submit", "train.py", "--checkpoint", "here"],
        ["submit", "train.py", "--memory", "16GB"],
        ["submit", "train.py", "-e", "A"],
        ["submit", "train.py", "--mount", "data"],
        ["run", "train.py", "--set", "a"],
        ["wait", "digits", "--for", "Nothing"],
        ["wait", "digits", "--timeout", "soon"],
        ["logs", "digits", "--task", "boss"],
        ["scale", "digits", "0"],
        ["scale", "digits"],
        ["scale", "digits", "2", "--replicas", "3"],
        ["exec", "digits", "-it", "--", "bash"],
        ["logs", "digits", "--since", "soon"],
        ["submit", "train.py", "--dry-run=server"],
        ["run", "train.py", "--work-dir", "words"],
        ["run", "train.py", "--quiet", "--all-tasks"],
        ["run", "train.py", "--checkpoint", "words"],
    ],
    ids=" ".join,
)
def test_arguments_that_cannot_be_are_one_sentence(dtjob, server: ApiServer, arguments: list[str]) -> None:
    server.answer(f"GET {JOBS}/digits", stored())
    options = ("--kubeconfig", server.kubeconfig(Path())) if arguments[0] in OF_A_CLUSTER else ()
    said = dtjob(*arguments, *options)
    assert is_one_sentence(*said), said


@pytest.mark.parametrize("command", [("tensorboard", "digits"), ("ui",)])
def test_a_port_that_is_taken_is_one_sentence(dtjob, server: ApiServer, command: tuple[str, ...]) -> None:
    server.answer(f"GET {JOBS}/digits", stored())
    server.answer(f"GET {JOBS}", {"items": [], "metadata": {"resourceVersion": "1"}})
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = dtjob(*command, "--port", port, "--kubeconfig", server.kubeconfig(Path()))
    assert is_one_sentence(*said), said
    assert said[2].startswith(f"dtjob: --port: {port} cannot be used")
    assert not [method for method, _, _ in server.asked if method == "POST"]


def test_a_full_disk_is_one_sentence(server: ApiServer) -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    try:
        command = [sys.executable, "-m", "dtjob", "validate", "job.yaml"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    finally:
        os.close(full)
    assert (done.returncode, done.stderr) == (2, "dtjob: No space left on device\n")


def test_every_command_is_here() -> None:
    assert main.COMMANDS.keys() - {*OF_A_CLUSTER, *OF_FILES} == {"operator", "init", "version"}
