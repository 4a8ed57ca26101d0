# SPDX-License-Identifier: Apache-2.0
"""helm 3 makes the same objects of the chart as helm 4, and refuses the same values.

`DTJOB_HELM` runs the other tests of the chart with helm 3.
"""

import subprocess
from pathlib import Path

import pytest
import yaml

from tests.cluster.support.chart import CHART, NAMESPACE, RELEASE
from tests.cluster.test_chart_each_value import CONTENT, values_of
from tools import binaries


@pytest.fixture(scope="module")
def helm_3() -> Path:
    """helm 3; skips where it cannot be built."""
    try:
        return binaries.find(("helm-3",))["helm-3"]
    except binaries.BinariesError as error:
        pytest.skip(f"no helm 3: {str(error).splitlines()[0]}")


def made(helm: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """What this helm makes of the chart, without a cluster."""
    command = [helm, "template", RELEASE, CHART, f"--namespace={NAMESPACE}", *options]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.mark.parametrize("values", [{}, {path: value for path, (value, _) in CONTENT.items()}], ids=["none", "all"])
def test_helm_3_makes_the_same_objects_as_helm_4(
    helm_3: Path, helm_program: Path, tmp_path: Path, values: dict[str, object]
) -> None:
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump(values_of(values)))
    found = [made(helm, f"--values={file}") for helm in (helm_3, helm_program)]
    assert [one.stderr for one in found] == ["", ""]
    objects = [sorted(map(str, yaml.safe_load_all(one.stdout))) for one in found]
    assert objects[0] == objects[1]


def test_helm_3_refuses_a_wrong_value_by_name(helm_3: Path) -> None:
    for value, said in (("metrics.prot=8081", "'prot'"), ("jobs.podLabels.team=two words", "/jobs/podLabels/team")):
        done = made(helm_3, f"--set={value}")
        assert done.returncode == 1
        assert said in done.stderr
