"""Resync over namespaces of which one may not be listed, as when it was deleted and our role in it with it."""

from __future__ import annotations

from typing import cast

import pytest

from dtjob.api.job import KIND
from dtjob.controller.store import Store
from dtjob.kube.api_error import ApiError
from dtjob.kube.client import Kube
from dtjob.kube.resync import resync
from dtjob.objects.manifest import Manifest
from tests.unit.operator import builders
from tests.unit.operator.simulation.operator import job_manifest

FORBIDDEN = ApiError(403, "Forbidden", "pods is forbidden")


class Cluster:
    """Lists a job of each namespace that does not answer with an error."""

    def __init__(self, *namespaces: str, **errors: ApiError) -> None:
        self.namespaces, self.errors = namespaces, errors

    async def list_all(self, kind: str, namespace: str | None, selector: str = "") -> tuple[list[Manifest], int]:
        if error := self.errors.get(namespace or "everywhere"):
            raise error
        return [job_in(namespace)] if kind == KIND and namespace in self.namespaces else [], 50


def job_in(namespace: str | None) -> Manifest:
    made = job_manifest(builders.job(uid=f"uid-{namespace}"))
    made["metadata"] |= {"namespace": namespace, "resourceVersion": "10"}
    return made


async def test_a_namespace_that_is_refused_spoils_nothing_for_the_others():
    store = Store()
    await resync(cast(Kube, Cluster("a", "b")), store, ["a", "b"])
    found = await resync(cast(Kube, Cluster(b=FORBIDDEN)), store, ["a", "b"])
    assert found.refused == {"b": "pods is forbidden"}
    assert found.changed == {("a", "digits")}
    assert store.job_keys() == [("b", "digits")]  # nobody said that it is gone


async def test_a_namespace_that_answers_again_is_taken_in():
    store = Store()
    await resync(cast(Kube, Cluster("a", b=FORBIDDEN)), store, ["a", "b"])
    assert store.job_keys() == [("a", "digits")]
    found = await resync(cast(Kube, Cluster("a", "b")), store, ["a", "b"])
    assert (found.changed, found.refused) == ({("b", "digits")}, {})


@pytest.mark.parametrize(
    ("cluster", "namespaces"),
    [
        (Cluster(everywhere=FORBIDDEN), []),
        (Cluster(a=FORBIDDEN, b=FORBIDDEN), ["a", "b"]),
        (Cluster("a", b=ApiError(500, "InternalError", "no leader")), ["a", "b"]),
    ],
    ids=["whole cluster", "all of them", "another error"],
)
async def test_what_leaves_nothing_or_may_pass_is_raised(cluster: Cluster, namespaces: list[str]):
    with pytest.raises(ApiError):
        await resync(cast(Kube, cluster), Store(), namespaces)
