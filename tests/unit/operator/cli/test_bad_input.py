# SPDX-License-Identifier: Apache-2.0
"""`--kubeconfig`: what is named is there."""

import os
from pathlib import Path

import pytest

from dtjob.bad_input import BadInput, check_kubeconfig


@pytest.mark.parametrize("command", ["doctor", "operator"])
@pytest.mark.parametrize("name", ["none", "."])
def test_a_kubeconfig_that_is_no_file_is_named(dtjob, tmp_path, caplog, command, name):
    missing = tmp_path / name
    code, out, err = dtjob(command, "--kubeconfig", missing)
    assert (code, out) == (2, "")
    assert err == f"dtjob: --kubeconfig: {missing} is not a file\n"
    assert not caplog.records


def test_a_pipe_is_a_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    check_kubeconfig(str(tmp_path / "pipe"))
    check_kubeconfig(None)
    with pytest.raises(BadInput, match="none is not a file"):
        check_kubeconfig(str(tmp_path / "none"))
