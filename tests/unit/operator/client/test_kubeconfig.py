# SPDX-License-Identifier: Apache-2.0
"""The kubeconfig as kubectl reads it: merged files, contexts, tokens, passwords and plugins."""

import base64
import errno
import json
import os
import pty
import select
import ssl
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import certifi
import pytest
import yaml

from dtjob.client import kubeconfig
from dtjob.client.cluster import connect
from dtjob.client.errors import NoCluster, NotReached
from dtjob.client.kubeconfig import access
from tests.unit.operator.client.api_server import ApiServer


def config(directory: Path, name: str, user: dict[str, Any], **context: Any) -> Path:
    file = directory / name
    file.write_text(
        yaml.safe_dump(
            {
                "clusters": [{"name": name, "cluster": {"server": f"http://{name}:80/base/"}}],
                "users": [{"name": name, "user": user}],
                "contexts": [{"name": name, "context": {"cluster": name, "user": name, **context}}],
                "current-context": name,
            }
        )
    )
    return file


def test_several_files_are_merged_and_the_first_context_is_current(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [config(tmp_path, "a", {"token": "1"}), config(tmp_path, "b", {"token": "2"}, namespace="n")]
    monkeypatch.setenv("KUBECONFIG", ":".join(map(str, files)))
    assert access().server == "http://a:80/base"
    found = access(context="b")
    assert (found.namespace, found.authorization()) == ("n", "Bearer 2")


def test_tokens_passwords_and_token_files_become_authorization_headers(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("abc\n")
    assert access(str(config(tmp_path, "a", {"tokenFile": "token"}))).authorization() == "Bearer abc"
    user = {"username": "me", "password": "p"}
    assert access(str(config(tmp_path, "b", user))).authorization() == "Basic bWU6cA=="
    assert access(str(config(tmp_path, "c", {}))).authorization() is None


def plugin(directory: Path, life: float | None) -> dict[str, Any]:
    """The user of a plugin that answers t1, t2 and so on, each valid for so many seconds. It fails if there is a file
    `fails`."""
    program = f"""
import datetime, json, os, pathlib, sys
folder = pathlib.Path({str(directory)!r})
if (folder / "fails").exists():
    sys.exit("the network is away")
with (folder / "asked").open("a") as file:
    file.write("x")
status = {{"token": "t%d" % (folder / "asked").stat().st_size}}
life = {life!r}
if life is not None:
    end = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=life)
    status["expirationTimestamp"] = end.strftime("%Y-%m-%dT%H:%M:%SZ")
print(json.dumps({{"status": status}}))
"""
    return {"exec": {"command": sys.executable, "args": ["-c", program], "env": [{"name": "A", "value": "1"}]}}


@pytest.mark.parametrize(("life", "tokens"), [(None, ["t1", "t1"]), (3600.0, ["t1", "t1"]), (-1.0, ["t1", "t2"])])
def test_a_plugin_is_asked_again_when_its_token_expires(tmp_path: Path, life: float | None, tokens: list[str]) -> None:
    found = access(str(config(tmp_path, "a", plugin(tmp_path, life))))
    assert [found.authorization(), found.authorization()] == [f"Bearer {token}" for token in tokens]


def test_a_token_is_renewed_a_minute_before_it_expires_or_after_four_fifths_of_a_short_life() -> None:
    said = {"expirationTimestamp": "1970-01-01T01:00:00Z"}
    assert kubeconfig._renewal(said, 0.0) == 3540.0
    assert kubeconfig._renewal(said, 3500.0) == 3580.0
    assert kubeconfig._renewal({}, 0.0) is None


def test_a_refused_token_is_renewed_once_by_one_of_many_threads(tmp_path: Path) -> None:
    found = access(str(config(tmp_path, "a", plugin(tmp_path, None))))
    refused = found.authorization()
    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(lambda _: found.renewed(refused), range(8)))
    assert (tmp_path / "asked").read_text() == "xx"
    assert not access(str(config(tmp_path, "b", {"token": "1"}))).renewed("Bearer 1")


def test_a_token_file_that_rotates_is_read_again(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("old")
    found = access(str(config(tmp_path, "a", {"tokenFile": "token", "token": "oldest"})))
    assert found.authorization() == "Bearer old"
    assert not found.renewed("Bearer old")
    (tmp_path / "token").write_text("new")
    assert found.renewed("Bearer old")
    assert found.authorization() == "Bearer new"
    (tmp_path / "token").unlink()
    with pytest.raises(NoCluster, match="token cannot be read"):
        found.authorization()


def test_a_plugin_that_fails_later_is_asked_again(tmp_path: Path) -> None:
    """A wait goes on where the network of the plugin is away for a while."""
    found = access(str(config(tmp_path, "a", plugin(tmp_path, -1.0))))
    found.authorization()
    (tmp_path / "fails").touch()
    with pytest.raises(NotReached, match="the network is away"):
        found.authorization()
    (tmp_path / "fails").unlink()
    assert found.authorization() == "Bearer t2"


def test_a_plugin_that_fails_is_named(tmp_path: Path) -> None:
    user = {"exec": {"command": sys.executable, "args": ["-c", "raise SystemExit('log in')"]}}
    with pytest.raises(NoCluster, match=r"the credential plugin .* failed: log in"):
        access(str(config(tmp_path, "a", user))).authorization()


def test_the_error_without_a_kubeconfig_says_what_to_give(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    monkeypatch.setattr(kubeconfig, "SERVICE_ACCOUNT", tmp_path)
    with pytest.raises(NoCluster, match="--kubeconfig FILE, or set KUBECONFIG"):
        access()
    with pytest.raises(NoCluster, match="is not a file"):
        access(str(tmp_path / "none"))


def test_a_home_that_is_not_to_be_looked_into_has_no_kubeconfig(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As /root for everybody else, where HOME says so all the same."""
    where, stat = str(tmp_path / "root" / "config"), os.stat

    def refusing(path: Any, **how: Any) -> os.stat_result:
        if str(path) == where:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), where)
        return stat(path, **how)

    monkeypatch.setenv("KUBECONFIG", where)
    monkeypatch.setattr(kubeconfig, "SERVICE_ACCOUNT", tmp_path)
    monkeypatch.setattr(os, "stat", refusing)
    with pytest.raises(NoCluster, match="no cluster is configured"):
        access()


def test_a_pod_without_a_kubeconfig_has_its_service_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in (("token", "secret\n"), ("ca.crt", certifi.contents()), ("namespace", "team")):
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(kubeconfig, "SERVICE_ACCOUNT", tmp_path)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "1")
    found = access()
    assert (found.server, found.namespace, found.authorization()) == ("https://[fd00::1]:1", "team", "Bearer secret")
    (tmp_path / "token").write_text("")  # it is being replaced
    with pytest.raises(NoCluster, match="the token is empty"):
        found.authorization()
    (tmp_path / "ca.crt").unlink()
    with pytest.raises(NoCluster, match="service account of this pod"):
        access()


def test_a_plugin_is_found_beside_its_kubeconfig_and_is_told_of_the_cluster(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "login"
    says = 'echo $KUBERNETES_EXEC_INFO > ${0%/*}/told; echo \'{"status": {"token": "t"}}\''
    program.write_text(f"#!/bin/sh\n{says}\n")
    program.chmod(0o755)
    user = {"exec": {"command": "./bin/login", "env": [], "provideClusterInfo": True}}
    assert access(str(config(tmp_path, "a", user))).authorization() == "Bearer t"
    told = json.loads((tmp_path / "bin" / "told").read_text())
    assert told["spec"] == {"interactive": False, "cluster": {"server": "http://a:80/base/"}}


def test_somebody_at_a_terminal_sees_what_a_plugin_asks_for_and_answers(server: ApiServer, tmp_path: Path) -> None:
    """As one that says which page to open to log in, and waits."""
    program = 'echo "open the page" >&2; read code; echo "{\\"status\\": {\\"token\\": \\"$code\\"}}"'
    file = server.kubeconfig(tmp_path, exec={"command": "sh", "args": ["-c", program]})
    server.answer("GET /version", {})
    server.tokens = {"t7"}
    ours, theirs = pty.openpty()
    words = [sys.executable, "-m", "dtjob", "wait", "digits", "--kubeconfig", str(file)]
    with subprocess.Popen(words, stdin=theirs, stdout=subprocess.PIPE, stderr=theirs, text=True) as process:
        os.close(theirs)
        try:
            seen = _until(ours, b"open the page")
            os.write(ours, b"t7\n")
            seen += _until(ours, b"not found")
        finally:
            process.kill()
    os.close(ours)


def _until(terminal: int, said: bytes) -> bytes:
    seen = b""
    while said not in seen:
        assert select.select([terminal], [], [], 20)[0], seen
        seen += os.read(terminal, 1024)
    return seen


def test_calls_are_made_as_the_user_that_the_kubeconfig_names(server: ApiServer, tmp_path: Path) -> None:
    """As kubectl makes them. Without it they would be made with more rights than the user has chosen."""
    user = {"token": "t", "as": "ann", "as-groups": ["a", "b"], "as-user-extra": {"why/x": ["c"]}}
    connect(str(server.kubeconfig(tmp_path, **user))).find("Pod", "a")
    (head,) = server.heads
    assert head.get_all("Impersonate-Group") == ["a", "b"]
    assert (head["Impersonate-User"], head["Impersonate-Extra-why%2Fx"], head["Authorization"]) == (
        "ann",
        "c",
        "Bearer t",
    )


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("", "a: [", "cannot be read"),
        ("", "contexts: 3", "cannot be read"),
        ("", "{}", "no current context"),
        ("", "current-context: x", "has no context x"),
        ("user: a", "user: other", "has no user other"),  # the calls would be those of system:anonymous
        ("token: '1'", "auth-provider: {name: gcp}", "has an auth-provider for a"),
    ],
)
def test_a_kubeconfig_that_cannot_be_used_is_said(tmp_path: Path, before: str, after: str, said: str) -> None:
    file = config(tmp_path, "a", {"token": "1"})
    file.write_text(file.read_text().replace(before, after) if before else after)
    with pytest.raises(NoCluster, match=said):
        access(str(file))


def test_no_key_stays_on_disk_when_it_cannot_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    data = base64.b64encode(b"no key").decode()
    file = config(tmp_path, "a", {"client-certificate-data": data, "client-key-data": data})
    file.write_text(file.read_text().replace("http://", "https://"))
    with pytest.raises(NoCluster, match="cannot be read"):
        access(str(file))
    assert list(tmp_path.iterdir()) == [file]


def test_a_key_that_is_a_file_is_not_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A container may have no folder that can be written to."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    loaded = []
    monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", lambda _, *files: loaded.append(files))
    for name in ("a.crt", "a.key"):
        (tmp_path / name).touch()
    file = config(tmp_path, "a", {"client-certificate": "a.crt", "client-key": "a.key"})
    file.write_text(file.read_text().replace("http://", "https://"))
    access(str(file))
    assert loaded == [(str(tmp_path / "a.crt"), str(tmp_path / "a.key"))]


def test_a_kubeconfig_may_be_a_pipe(tmp_path: Path) -> None:
    """As in `--kubeconfig <(command)`."""
    text, pipe = config(tmp_path, "a", {"token": "1"}).read_text(), tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as pool:
        pool.submit(pipe.write_text, text)
        assert access(str(pipe)).authorization() == "Bearer 1"
