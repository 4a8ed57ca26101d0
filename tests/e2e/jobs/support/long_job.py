# SPDX-License-Identifier: Apache-2.0
"""One job for many tests: it trains for longer than all of them, and each begins where the one before has left it.

Starting TensorFlow takes most of what a test of a running job takes. What one test counts it counts from its beginning.
"""

from datetime import timedelta

from dtjob import times
from tests.e2e.jobs.support.training_job import RESTRICTED, TrainingJob
from tests.e2e.jobs.support.until_told import until_told
from tools.cluster.cluster import Cluster
from tools.cluster.rest import Api

_ROLES = {"chief": {}, "worker": {"replicas": 2}}
_LONG_AGO = timedelta(minutes=1)
"""Longer than failures belong to the incident of an earlier one."""


class LongJob:
    """Chief and two workers in a namespace of their own, which enforces the restricted Pod Security profile."""

    def __init__(self, cluster: Cluster, api: Api, image: str) -> None:
        self._cluster, self._api, self._image = cluster, api, image
        self._job: TrainingJob | None = None

    def ready(self) -> TrainingJob:
        """The job, all of it up and past a checkpoint of its latest start; a new one where the last test broke it."""
        if self._job is not None:
            try:
                return self._settled(self._job)
            except AssertionError:
                self.delete()
        metadata = {"generateName": "long-job-", "labels": RESTRICTED}
        made = self._api.create("namespaces", None, {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        namespace: str = made["metadata"]["name"]
        self._api.wait_for("serviceaccounts", namespace, "default", lambda account: account is not None)
        manifest = until_told(self._api, namespace, self._image, _ROLES)
        self._job = TrainingJob(self._cluster, self._api, namespace, manifest)
        self._cluster.claim(namespace, self._job.name)
        self._job.apply()
        return self._settled(self._job)

    def delete(self) -> None:
        """Delete it with its namespace; none of its pods is left then."""
        if self._job is not None:
            job, self._job = self._job, None
            job.delete()
            self._api.delete("namespaces", None, job.namespace)

    def _settled(self, job: TrainingJob) -> TrainingJob:
        status = job.wait_up()["status"]
        restored = job.wait_report("a step", lambda report: "step" in report).get("restoredStep", 0)
        job.wait_checkpoint(restored + 1)
        if incident := status.get("internal", {}).get("incident"):
            # As if the last test's failure had been a while ago, else this one's would belong to it.
            began = times.rfc3339(times.parse(incident["startedAt"]) - _LONG_AGO)
            patch = {"status": {"internal": {"incident": {"startedAt": began}}}}
            self._api.patch("dtjobs", job.namespace, job.name, patch, "status")
        return job
