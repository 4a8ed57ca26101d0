# SPDX-License-Identifier: Apache-2.0
"""Words that the parser of the command line does not take are answered with one line and exit code 2."""

from typing import Any

import pytest


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("run", "FILE: is missing; see dtjob run --help"),
        ("run train.py --workers 0", "--workers: must be greater than or equal to 1; see dtjob run --help"),
        ("run train.py --workers x", "--workers: must be a valid integer; see dtjob run --help"),
        ("run train.py --workers", "--workers: needs a value; see dtjob run --help"),
        ("run train.py --evaluator=yes", "--evaluator: takes no value; see dtjob run --help"),
        ("run job.yaml --worker 2", "--worker: is no option of dtjob run; did you mean --workers?"),
        (
            "run train.py --workers 2 --epochs 3 --rate=0.1",
            "--epochs: is no option of dtjob run; arguments of the script go after --: "
            "dtjob run train.py -- --epochs 3 --rate=0.1",
        ),
        (
            "submit --epochs=3 train.py",
            "--epochs: is no option of dtjob submit; arguments of the script go after --: "
            "dtjob submit train.py -- --epochs=3",
        ),
        (  # a value that may be secret is not repeated
            "run train.py --epochs 3 -e KEY=secret",
            "--epochs: is no option of dtjob run; arguments of the script go after --: "
            "dtjob run train.py -- --epochs 3",
        ),
        (
            "run train.py --worker 2",
            "--worker: is no option of dtjob run; did you mean --workers? Arguments of the script go after --: "
            "dtjob run train.py -- --worker 2",
        ),
        ("list --al", "--al: is no option of dtjob list; see dtjob list --help"),
        ("fly", "'fly' is no command; see dtjob --help"),
        ("lst", "'lst' is no command; did you mean list?"),
        ("describ", "'describ' is no command; see dtjob --help"),
        (
            "submit train.py --dry-run=client",
            "--dry-run: takes no value; it prints the objects and asks no cluster, as kubectl's --dry-run=client does",
        ),
        ("status a b", "Got unexpected extra argument(s) (b); see dtjob status --help"),
    ],
)
def test_the_answer_names_the_word_and_what_to_write(dtjob: Any, words: str, said: str) -> None:
    assert dtjob(*words.split()) == (2, "", f"dtjob: {said}\n")


def test_a_command_line_without_words_is_answered_with_the_help(dtjob: Any) -> None:
    code, out, err = dtjob()
    assert (code, err) == (0, "")
    assert out.startswith("Usage: dtjob")
