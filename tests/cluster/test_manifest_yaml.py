# SPDX-License-Identifier: Apache-2.0
"""`dtjob` reads a file as kubectl does, to the type of each value."""

import json
from pathlib import Path
from typing import Any

import pytest

from dtjob.manifests.manifest_yaml import documents, written
from tests.cluster.conftest import Kubectl
from tests.unit.operator.manifests.test_manifest_yaml import VALUES


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A manifest with all of these values, one under each number."""
    path = tmp_path_factory.mktemp("yaml") / "values.yaml"
    lines = "\n".join(f"  v{number}: {text}" for number, text in enumerate(VALUES))
    path.write_text(f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: values}}\nvalues:\n{lines}\n")
    return path


ONLY_READ = ("create", "--dry-run=client", "--validate=false", "-o", "json", "-f")


def test_kubectl_and_dtjob_see_the_same(kubectl: Kubectl, file: Path) -> None:
    seen: dict[str, Any] = json.loads(kubectl(*ONLY_READ, str(file)).stdout)["values"]
    (ours,) = documents(file.read_text())
    for number, text in enumerate(VALUES):
        value, wanted = ours["values"][f"v{number}"], seen[f"v{number}"]
        assert value == wanted, text
        assert isinstance(value, str) == isinstance(wanted, str), text
        assert isinstance(value, bool) == isinstance(wanted, bool), text


def test_kubectl_reads_the_texts_that_dtjob_has_written(kubectl: Kubectl) -> None:
    whole = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "values"}, "values": list(VALUES)}
    seen = json.loads(kubectl(*ONLY_READ, "-", stdin=written([whole])).stdout)
    assert seen["values"] == list(VALUES)
