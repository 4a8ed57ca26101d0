# SPDX-License-Identifier: Apache-2.0
"""The kubeconfig as kubectl reads it: merged files, contexts, tokens, passwords and plugins."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from dtjob.client import kubeconfig
from dtjob.client.errors import NoCluster
from dtjob.client.kubeconfig import access


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


def test_a_plugin_is_asked_once(tmp_path: Path) -> None:
    answer = json.dumps({"status": {"token": "of-the-plugin"}})
    program = f"import os; open({str(tmp_path / 'asked')!r}, 'a').write('x'); print({answer!r})"
    user = {"exec": {"command": sys.executable, "args": ["-c", program], "env": [{"name": "A", "value": "1"}]}}
    found = access(str(config(tmp_path, "a", user)))
    assert [found.authorization(), found.authorization()] == ["Bearer of-the-plugin"] * 2
    assert (tmp_path / "asked").read_text() == "x"


def test_a_plugin_that_fails_is_named(tmp_path: Path) -> None:
    user = {"exec": {"command": sys.executable, "args": ["-c", "raise SystemExit('log in')"]}}
    with pytest.raises(NoCluster, match=r"the credential plugin .* failed: log in"):
        access(str(config(tmp_path, "a", user))).authorization()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: [", "cannot be read"),
        ("contexts: 3", "cannot be read"),
        ("{}", "no current context"),
        ("current-context: x", "has no context x"),
    ],
)
def test_the_error_of_a_file_that_is_no_kubeconfig_says_why(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "config"
    file.write_text(text)
    with pytest.raises(NoCluster, match=said):
        access(str(file))


def test_the_error_without_a_kubeconfig_says_what_to_give(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    monkeypatch.setattr(kubeconfig, "SERVICE_ACCOUNT", tmp_path)
    with pytest.raises(NoCluster, match="--kubeconfig FILE, or set KUBECONFIG"):
        access()
    with pytest.raises(NoCluster, match="is not a file"):
        access(str(tmp_path / "none"))
