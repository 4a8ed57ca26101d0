# SPDX-License-Identifier: Apache-2.0
"""docs/operate/support.md names the versions that the tests use."""

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in (ROOT / "docs" / "operate" / "support.md").read_text().split("## What you", 1)[0].splitlines()
    if line.startswith("| ")
]
MODULES = {
    "Kubernetes": "k8s.io/kubernetes",
    "kind": "sigs.k8s.io/kind",
    "helm": "helm.sh/helm/v4",
    "helm 3": "helm.sh/helm/v3",
    "Kueue": "sigs.k8s.io/kueue",
    "Volcano": "volcano.sh/volcano",
    "scheduler-plugins": "sigs.k8s.io/scheduler-plugins",
}
PACKAGES = {"TensorFlow": "tensorflow_cpu", "Keras": "keras", "tf_keras": "tf_keras", "kopf": "kopf"}


def run_versions(what: str) -> set[str]:
    """What the page says was run of this."""
    return {row[2].partition(",")[0] for row in ROWS if row[0] == what}


@pytest.mark.parametrize(("what", "module"), MODULES.items())
def test_go_programs_are_those_that_the_tests_build(what: str, module: str) -> None:
    folder = what.lower().replace(" ", "-") if what != "Kubernetes" else "kubernetes*"
    files = (ROOT / "tools" / "go").glob(f"{folder}/go.mod")
    built = {version for file in files for version in re.findall(rf"^\t{module} v(\S+)", file.read_text(), re.M)}
    # The other versions of Kubernetes can be built; the page names those that ran.
    assert run_versions(what) <= built if what == "Kubernetes" else run_versions(what) == built


@pytest.mark.parametrize(("what", "package"), PACKAGES.items())
def test_packages_are_those_of_the_constraints(what: str, package: str) -> None:
    (version,) = re.findall(rf"^{package}==(\S+)$", (ROOT / "constraints.txt").read_text(), re.M)
    assert run_versions(what) == {version}


def test_the_oldest_kubernetes_is_that_of_the_chart() -> None:
    chart = yaml.safe_load((ROOT / "helm" / "dtjob" / "Chart.yaml").read_text())
    (oldest,) = {row[1].split()[0] for row in ROWS if row[0] == "Kubernetes"}
    assert chart["kubeVersion"] == f">={oldest}.0-0"
