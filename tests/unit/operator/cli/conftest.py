# SPDX-License-Identifier: Apache-2.0
"""The command line as its user meets it: a job's file, and `dtjob` with its exit code and what it says."""

import sys
from pathlib import Path

import pytest

from dtjob.cli import main
from dtjob.client.cluster import Cluster
from tests.unit.operator.cli.manifest import GOOD
from tests.unit.operator.client.api_server import ApiServer
from tests.unit.operator.client.verbs.jobs import with_digits


@pytest.fixture
def dtjob(monkeypatch, capsys):
    """Runs `dtjob ARGUMENTS…` and gives exit code, standard output and standard error."""

    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["dtjob", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main.main()
        out, err = capsys.readouterr()
        return int(end.value.code or 0), out, err

    return run


@pytest.fixture
def good(tmp_path: Path) -> Path:
    file = tmp_path / "digits.yaml"
    file.write_text(GOOD)
    return file


@pytest.fixture
def without_image(tmp_path: Path) -> Path:
    file = tmp_path / "no-image.yaml"
    file.write_text(GOOD.replace("  image: dtjob-trainer:dev\n", ""))
    return file


@pytest.fixture
def cluster(server: ApiServer, tmp_path: Path) -> Cluster:
    return with_digits(server, tmp_path)
