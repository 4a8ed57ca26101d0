# SPDX-License-Identifier: Apache-2.0
"""The objects in the blocks of YAML on the pages are taken by a real API server, as far as it knows their kinds."""

from typing import Any

import yaml

from dtjob.api.job import KIND
from tests.cluster.conftest import Kubectl
from tests.unit.page_commands import documents
from tests.unit.test_page_manifests import PAGES, jobs

NOT_SERVED = {
    "argoproj.io": "Argo: tests/unit/test_workflows_page.py and test_page_manifests.py look into them",
    "helm.toolkit.fluxcd.io": "Flux: tests/unit/test_page_manifests.py looks into the values",
    "jobset.x-k8s.io": "JobSet: what a reader has before",
    "kubeflow.org": "TFJob and Katib: tests/unit/test_workflows_page.py and test_tfjob_page.py look into them",
    "kueue.x-k8s.io": "Kueue: tests/cluster/test_chart_kueue.py and tests/integrations/kueue create them",
    "source.toolkit.fluxcd.io": "Flux: tests/unit/test_page_manifests.py looks into the values",
    "trainer.kubeflow.org": "TrainJob: what a reader has before",
}
"""Groups that the API server here does not have, and what tests their objects."""


def _in(namespace: str, found: dict[str, Any]) -> dict[str, Any]:
    """The object in this namespace, if it names one."""
    metadata = dict(found["metadata"])
    if "namespace" in metadata:
        metadata["namespace"] = namespace
    return {**found, "metadata": metadata}


def test_the_objects_of_the_pages_are_taken(kubectl: Kubectl, namespace: str) -> None:
    others = [one for page in PAGES for one in documents(page) if one.get("kind", KIND) != KIND]
    groups = {one["apiVersion"].rpartition("/")[0] for one in others}
    assert set(NOT_SERVED) <= groups
    served = [one for one in others if one["apiVersion"].rpartition("/")[0] not in NOT_SERVED]
    ours = [job for page in PAGES for job in jobs(page)]
    text = yaml.safe_dump_all([_in(namespace, one) for one in (*served, *ours)])
    done = kubectl("apply", "--dry-run=server", "--filename=-", stdin=text, check=False)
    assert done.stderr == ""
    assert done.returncode == 0
    assert done.stdout.count("(server dry run)") == len(served) + len(ours)
