# SPDX-License-Identifier: Apache-2.0
"""The fields of pods that `dtjob validate` knows are those of the installed Kubernetes client."""

from tools import pod_fields


def test_the_file_is_fresh() -> None:
    assert pod_fields.FILE.read_text() == pod_fields.text(), "run `make pod-fields`"
