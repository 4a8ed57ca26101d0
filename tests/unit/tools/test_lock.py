# SPDX-License-Identifier: Apache-2.0
"""constraints.txt is what `make lock` writes of its own packages."""

from tools.lock import CONSTRAINTS, HEAD, locked


def test_the_file_is_as_the_tool_writes_it() -> None:
    assert locked(CONSTRAINTS.read_text()) == CONSTRAINTS.read_text()


def test_own_packages_and_comments_are_left_out_and_tensorflow_is_added() -> None:
    frozen = "# a\n-e git+x#egg=y\nB==2\ntensorflow_cpu==2.21.0\na==1\ndtjob==0.1.0\npip==23.2\n"
    assert locked(frozen) == HEAD + "a==1\nB==2\ntensorflow==2.21.0\ntensorflow_cpu==2.21.0\n"
