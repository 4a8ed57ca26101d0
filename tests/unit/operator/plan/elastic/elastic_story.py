# SPDX-License-Identifier: Apache-2.0
"""An elastic job and its pods, over time."""

from datetime import datetime
from typing import Any

from dtjob.objects import labels
from dtjob.objects.manifest import Manifest
from tests.unit.operator import builders, story
from tests.unit.operator.builders import NOW
from tests.unit.operator.queued import CLAIM


class Story(story.Story):
    """The story of a job with a chief and elastic workers."""

    def __init__(self, count: int = 4, *, least: int | None = 2, most: int | None = 8, **spec: Any) -> None:
        strategy = spec.pop("strategy", "MultiWorkerMirrored")
        roles: dict[str, Any] = {"chief": {}, "worker": {"replicas": count}}
        roles |= {"ps": {"replicas": 2}} if strategy == "ParameterServer" else {}
        roles |= {"evaluator": {}} if spec.pop("evaluator", False) else {}
        blocks = {"checkpoint": CLAIM, "elasticPolicy": {"minReplicas": least, "maxReplicas": most}, **spec}
        super().__init__(builders.job(strategy, replicaSpecs=roles, **blocks))

    def shrunk(self) -> "Story":
        """Began with room for two of four workers, and went on with these at 300."""
        self.settle(NOW)
        self.places(now=NOW, without=("worker-2-0", "worker-3-0"))
        self.settle(builders.at(300))
        self.run(builders.at(301))
        assert self.workers["replicas"] == 2
        return self


def scaled(replicas: int, **spec: Any) -> Story:
    """A job that runs with four workers, and is to have so many."""
    story = Story(**spec)
    story.run()
    story.change(replicas=replicas)
    return story


def without_room(*names: str, now: datetime = NOW) -> Story:
    """A job of which no node takes these pods."""
    story = Story()
    story.settle(NOW)
    story.places(now=now, without=names)
    return story


def told(story: Story, reason: str) -> list[str]:
    """The messages of the events with this reason."""
    return [one.message for one in story.events if one.reason == reason]


def config_map(pod: Manifest) -> str:
    """The ConfigMap with the cluster spec that a pod mounts."""
    volume = next(one for one in pod["spec"]["volumes"] if one["name"] == "dtjob-cluster")
    return str(volume["configMap"]["name"])


def role(pod: Manifest) -> str:
    """The role that a pod's label says."""
    return labels.of(pod)[labels.ROLE]
