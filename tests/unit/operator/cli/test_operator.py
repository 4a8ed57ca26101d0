# SPDX-License-Identifier: Apache-2.0
"""`dtjob operator`: its options, its log, and a process that cannot begin."""

import json
import logging
import sys
from pathlib import Path

import pytest

from dtjob.bad_input import BadInput
from dtjob.cli import operator
from dtjob.cli.commands.cluster import LogFormat, LogLevel
from dtjob.cli.operator import KeyedFormatter


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("--default-image=", "--default-image: '' is no image"),
        ("--default-image=a b", "--default-image: 'a b' is no image"),
        ("--default-pod-label=team", "--default-pod-label: 'team' is not KEY=VALUE"),
        ("--default-pod-label=training.dtjob.dev/role=ps", "training.dtjob.dev/role belongs to dtjob"),
        ("--metrics=8081", "--metrics: '8081' is not host:port"),
        ("--status-scrapers=prometheus", "--status-scrapers: 'prometheus' is no JSON list"),
        ("--liveness=8080", "--liveness: '8080' is not host:port"),
    ],
)
def test_operator_refuses_wrong_options_at_its_start(dtjob, option, said):
    code, _, err = dtjob("operator", option)
    assert code == 2
    assert said in err


@pytest.mark.parametrize("name", ["none", "."])
def test_a_kubeconfig_that_is_no_file_is_named(dtjob, tmp_path, name):
    missing = tmp_path / name
    assert dtjob("operator", "--kubeconfig", missing) == (2, "", f"dtjob: --kubeconfig: {missing} is not a file\n")


def test_a_kubeconfig_that_configures_nothing_is_one_sentence(dtjob, tmp_path):
    file = tmp_path / "config"
    file.write_text("{}")
    code, out, err = dtjob("operator", "--kubeconfig", file)
    assert (code, out) == (2, "")
    (line,) = err.splitlines()
    assert line.startswith("dtjob: the kubeconfig has no current context")


def test_the_lease_and_the_readers_of_status_are_of_the_pods_own_namespace_by_default(monkeypatch, tmp_path: Path):
    own = tmp_path / "namespace"
    monkeypatch.setattr(operator, "OWN_NAMESPACE", own)
    assert operator.readers(None, "[]").operator_namespace is None
    with pytest.raises(BadInput, match="--lease-namespace"):
        operator.election(None, "dtjob", 15)
    own.write_text("training\n")
    assert operator.election(None, "dtjob", 15).namespace == "training"
    chosen = operator.election("other", "mine", 30)
    assert (chosen.namespace, chosen.name, chosen.seconds) == ("other", "mine", 30)

    assert operator.readers(None, "[]").operator_namespace == "training"
    assert operator.readers("other", '[{"podSelector": {}}]').scrapers == ({"podSelector": {}},)


MESSAGE = 'pod "a"\nfailed'


def record(exc_info: object = None) -> logging.LogRecord:
    made = logging.LogRecord("dtjob.kube", logging.WARNING, "f.py", 1, "%s", (MESSAGE,), exc_info)  # type: ignore[arg-type]
    made.created = 0.25
    return made


def test_json_has_each_key_once() -> None:
    assert json.loads(KeyedFormatter(LogFormat.JSON).format(record())) == {
        "time": "1970-01-01T00:00:00.250Z",
        "level": "warning",
        "logger": "dtjob.kube",
        "message": MESSAGE,
    }


def test_logfmt_quotes_the_message() -> None:
    line = KeyedFormatter(LogFormat.LOGFMT).format(record())
    assert line == f"time=1970-01-01T00:00:00.250Z level=warning logger=dtjob.kube message={json.dumps(MESSAGE)}"


@pytest.mark.parametrize("chosen", [LogFormat.JSON, LogFormat.LOGFMT])
def test_an_exception_stays_in_the_same_line(chosen: LogFormat) -> None:
    try:
        raise ValueError("no")
    except ValueError:
        line = KeyedFormatter(chosen).format(record(sys.exc_info()))
    assert "\n" not in line
    assert "ValueError: no" in line


def test_each_level_is_one_of_logging() -> None:
    assert all(isinstance(logging.getLevelName(level.upper()), int) for level in LogLevel)
