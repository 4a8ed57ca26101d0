# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the jobs' tests: both images on the cluster, the operator installed by helm, a namespace to train in."""

from collections.abc import Callable, Iterator

import pytest

from tests.cluster.support.chart import NAMESPACE as OPERATOR_NAMESPACE
from tests.e2e.jobs.support.long_job import LongJob
from tests.e2e.jobs.support.release import Release
from tests.e2e.jobs.support.training_job import RESTRICTED, TrainingJob
from tools import images
from tools.chart import find_helm
from tools.cluster.cluster import Cluster
from tools.cluster.rest import Api, Object

NewJob = Callable[..., TrainingJob]
SCRAPER = {"app": "prometheus"}
"""Labels of pods that may read the status of jobs' pods, in the same namespace."""


def _loaded(cluster: Cluster, name: str, config: pytest.Config) -> str:
    """The reference of an image that is built and on every node. Skips where it cannot be built."""
    capture = config.pluginmanager.getplugin("capturemanager")
    try:
        with capture.global_and_fixture_disabled():  # a first build takes minutes, and says so
            return cluster.load(images.build([name])[name])
    except images.ImagesError as error:
        pytest.skip(f"no images: {' '.join(str(error).split())}")


@pytest.fixture(scope="package")
def trainer_image(cluster: Cluster, pytestconfig: pytest.Config) -> str:
    """The trainer's image, on the nodes."""
    return _loaded(cluster, "trainer", pytestconfig)


@pytest.fixture(scope="package")
def chart_values() -> tuple[str, ...]:
    """What the operator is installed with, beside its image; others' tests say more."""
    (label,) = SCRAPER.items()
    return (f"jobs.scrapers[0].podSelector.matchLabels.{'='.join(label)}",)


@pytest.fixture(scope="package")
def release(
    cluster: Cluster,
    api: Api,
    pytestconfig: pytest.Config,
    tmp_path_factory: pytest.TempPathFactory,
    chart_values: tuple[str, ...],
) -> Iterator[Release]:
    """The operator, installed by helm for all tests."""
    helm = find_helm()
    if helm is None:
        pytest.skip("no helm: it is neither on the PATH nor could it be built (DTJOB_HELM may name it)")
    image = _loaded(cluster, "operator", pytestconfig)
    made = Release(cluster, api, helm, image, tmp_path_factory.mktemp("helm"), chart_values)
    metadata = {"name": OPERATOR_NAMESPACE, "labels": RESTRICTED}
    if OPERATOR_NAMESPACE not in [one["metadata"]["name"] for one in api.list("namespaces")]:
        api.create("namespaces", None, {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    made.install()
    yield made
    made.uninstall()


@pytest.fixture
def operator(release: Release) -> Release:
    """The operator, up: whatever the test before left it as."""
    if not release.installed():
        release.install()
    release.wait_pods(1)
    return release


@pytest.fixture
def new_job(cluster: Cluster, api: Api, operator: Release, namespace: str) -> Iterator[NewJob]:
    """Applies a job in the test's namespace, which enforces the restricted Pod Security profile; a claim of the job's
    name goes before it. The jobs are deleted at the test's end."""
    api.patch("namespaces", None, namespace, {"metadata": {"labels": RESTRICTED}})
    jobs: list[TrainingJob] = []

    def apply(manifest: Object, *, shared: bool = False) -> TrainingJob:
        job = TrainingJob(cluster, api, namespace, manifest)
        cluster.claim(namespace, job.name, shared=shared)
        job.apply()
        jobs.append(job)
        return job

    yield apply
    for job in jobs:
        job.delete()


@pytest.fixture(scope="package")
def long_job(cluster: Cluster, api: Api, release: Release, trainer_image: str) -> Iterator[LongJob]:
    """What `job` is taken from. Tests that ask for it come last, as it uses the machine (see ../conftest.py)."""
    held = LongJob(cluster, api, trainer_image)
    yield held
    held.delete()


@pytest.fixture
def job(long_job: LongJob, operator: Release) -> TrainingJob:
    """Chief and two workers that train for longer than any test, up and past a checkpoint: one job for all of these
    tests, as the test before has left it, or a new one where that left it broken."""
    return long_job.ready()
