# SPDX-License-Identifier: Apache-2.0
"""The events of a job are its own and its pods'."""

from dtjob.client.cluster import Cluster
from dtjob.client.verbs.events import events
from tests.unit.operator.client.api_server import ApiServer
from tests.unit.operator.client.verbs.jobs import event


def test_events_of_others_are_left_out_and_the_newest_is_last(server: ApiServer, cluster: Cluster) -> None:
    pod = event("digits-worker-0-1", "2026-11-23T11:59:00Z")
    own = event("digits", "2026-11-23T11:58:00Z", "DistributedTrainingJob", "u")
    others = [event("digits-2-worker-0-0", "2026-11-23T11:59:00Z"), event("digits-x", "2026-11-23T11:59:00Z")]
    server.answer("GET /api/v1/namespaces/team/events", {"items": [pod, own, *others], "metadata": {}})
    assert events(cluster, "digits") == [own, pod]
