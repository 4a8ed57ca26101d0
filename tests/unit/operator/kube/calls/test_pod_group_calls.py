# SPDX-License-Identifier: Apache-2.0
"""Which PodGroups an API server serves."""

import pytest

from dtjob.controller.cluster import ClusterError, Refused
from dtjob.kube.api_error import ApiError
from dtjob.kube.calls.pod_group_calls import NOT_AGAIN_SECONDS, Served, refuse_dropped
from dtjob.objects import gangs
from dtjob.objects.defaults import NO_DEFAULTS
from dtjob.objects.pod.pod import pod
from tests.unit.operator.builders import job, task
from tests.unit.operator.kube.pod_group_server import KUBERNETES, NOT_FOUND, VOLCANO, Server


async def test_a_served_pod_group_api_is_asked_for_once():
    server = Server("scheduling.k8s.io/v1beta1")
    served = Served(server.serves)
    assert [await served.version(KUBERNETES) for _ in range(3)] == ["scheduling.k8s.io/v1beta1"] * 3
    assert server.calls == ["GET /apis/scheduling.k8s.io/v1beta1"]


async def test_a_missing_pod_group_api_is_refused_with_its_remedy_and_found_once_served():
    server, now = Server(), [0.0]
    served = Served(server.serves, lambda: now[0])
    for _ in range(5):
        with pytest.raises(Refused, match=r"serves no PodGroups of scheduling.k8s.io: .*GenericWorkload=true"):
            await served.version(KUBERNETES)
    assert len(server.calls) == 1
    server.versions = ("scheduling.k8s.io/v1beta1",)
    now[0] = NOT_AGAIN_SECONDS
    assert await served.version(KUBERNETES) == "scheduling.k8s.io/v1beta1"


async def test_an_outage_is_no_answer():
    server = Server("scheduling.volcano.sh/v1beta1")
    server.error = ClusterError("away")
    served = Served(server.serves)
    with pytest.raises(ClusterError, match="away"):
        await served.version(VOLCANO)
    server.error = None
    assert await served.version(VOLCANO) == "scheduling.volcano.sh/v1beta1"


async def test_a_pod_group_api_that_is_not_served_any_more_is_looked_up_again():
    server = Server("scheduling.volcano.sh/v1beta1")
    served = Served(server.serves)
    await served.version(VOLCANO)
    assert "install Volcano" in served.words(VOLCANO, NOT_FOUND)
    await served.version(VOLCANO)
    assert len(server.calls) == 2
    gone = ApiError(404, "NotFound", 'namespaces "a" not found')
    assert served.words(VOLCANO, gone) == str(gone)
    assert served.words("Pod", NOT_FOUND) == str(NOT_FOUND)


async def test_a_pod_that_lost_its_gang_goes_and_is_a_refusal():
    asked = job(scheduling={"gang": {"provider": "Kubernetes"}})
    bare = pod(asked, task("worker-0"), 0)
    bare["metadata"]["uid"] = "uid-1"
    server, joined = Server(), gangs.joined(bare, asked, NO_DEFAULTS)
    await refuse_dropped(server.delete, joined, joined)
    await refuse_dropped(server.delete, bare, bare)
    assert server.deleted == []
    with pytest.raises(Refused, match=r"has dropped spec.schedulingGroup .* feature gate GenericWorkload"):
        await refuse_dropped(server.delete, joined, bare)
    assert server.deleted == ["Pod/digits-worker-0-0/uid-1"]
