# SPDX-License-Identifier: Apache-2.0
"""Which commands are a Python program."""

import pytest

from dtjob.cli.convert.program import common_program, python_command


@pytest.mark.parametrize(
    ("words", "program"),
    [
        (["python", "train.py"], {"entrypoint": "train.py"}),
        (["/usr/bin/python3.11", "-u", "/a/train.py", "--n", "3"], {"entrypoint": "/a/train.py", "args": ["--n", "3"]}),
        (["python3", "-m", "trainer.main", "$(RATE)"], {"entrypoint": "trainer.main", "args": ["$(RATE)"]}),
        (["sh", "-c", "python train.py --name='a b'"], {"entrypoint": "train.py", "args": ["--name=a b"]}),
        (["/bin/bash", "-c", "exec python train.py"], {"entrypoint": "train.py"}),
    ],
)
def test_a_command_that_runs_a_python_file_becomes_a_program(words: list[str], program: dict[str, object]) -> None:
    assert python_command(words) == program


@pytest.mark.parametrize(
    "words",
    [
        [], ["/entrypoint.sh"], ["python"], ["python", "-c", "print(1)"], ["python", "-O", "a.py"],
        ["sh", "-c", "cd /a && python train.py"], ["sh", "-c", "python $HOME/train.py"], ["python", "$(SCRIPT)"],
        ["sh", "-c", "python 'a"],
    ],
)  # fmt: skip
def test_other_commands_become_no_program(words: list[str]) -> None:
    assert python_command(words) is None


def test_roles_with_different_commands_have_no_common_program() -> None:
    one, other = {"command": ["python", "a.py"]}, {"command": ["python", "a.py"], "args": ["1"]}
    assert common_program([one, one])[0] == {"entrypoint": "a.py"}
    assert common_program([one, other])[0] is None
