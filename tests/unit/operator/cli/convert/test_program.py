# SPDX-License-Identifier: Apache-2.0
"""Which commands are a Python program."""

import pytest

from dtjob.cli.convert.program import common_program, python_command


@pytest.mark.parametrize(
    ("words", "entrypoint", "arguments"),
    [
        (["python", "train.py"], "train.py", ()),
        (["/usr/bin/python3.11", "-u", "/opt/a/train.py", "--n", 3], "/opt/a/train.py", ("--n", "3")),
        (["python3", "-m", "trainer.main", "$(RATE)"], "trainer.main", ("$(RATE)",)),
        (["sh", "-c", "python train.py --name='a b'"], "train.py", ("--name=a b",)),
        (["/bin/bash", "-c", "exec python train.py"], "train.py", ()),
    ],
)
def test_a_command_that_runs_a_python_file_becomes_a_program(
    words: list[object], entrypoint: str, arguments: tuple[str, ...]
) -> None:
    found = python_command(words)
    assert found is not None
    assert (found.entrypoint, found.arguments) == (entrypoint, arguments)


@pytest.mark.parametrize(
    "words",
    [
        [], ["/entrypoint.sh"], ["python"], ["python", "-c", "print(1)"], ["python", "-O", "a.py"],
        ["sh", "-c", "cd /a && python train.py"], ["sh", "-c", "python $HOME/train.py"], ["python", "$(SCRIPT)"],
        ["sh", "-c", "python 'a"],
    ],
)  # fmt: skip
def test_other_commands_become_no_program(words: list[object]) -> None:
    assert python_command(words) is None


def test_roles_with_different_commands_have_no_common_program() -> None:
    assert common_program([["python", "a.py"], ["python", "a.py"]])[0] is not None
    assert common_program([["python", "a.py"], ["python", "a.py", "1"]])[0] is None
