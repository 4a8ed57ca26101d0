# SPDX-License-Identifier: Apache-2.0
"""Builders of snapshots for the tests of the view, the story and the summary."""

from dtjob.api.status.status import Status
from dtjob.local import pod_status
from dtjob.local.display.snapshot import Snapshot
from dtjob.objects import topology
from dtjob.objects.pod.pod import pod
from tests.unit.operator.builders import NOW, job


def report(task, state="training", **more):
    base = {"task": task, "attempt": 0, "pid": 10, "state": state, "incarnation": 0, "trainingPid": 20}
    return {**base, "restartsInPlace": 0, **more}


def snapshot(reports=(), status=None, ended=None, digits=None, **more):
    """A run of chief, two workers and evaluator. `ended`: task id to return code, for pods that have ended."""
    digits = digits or job(evaluator=True)
    status = {"phase": "Running", **(status or {})}
    pods, pids = [], {}
    for number, task in enumerate(topology.tasks(digits)):
        manifest = pod(digits, task, Status.read(status).internal.attempts.of(task.id))
        name = manifest["metadata"]["name"]
        code = (ended or {}).get(task.id)
        manifest["status"] = pod_status.running(NOW) if code is None else pod_status.ended(code, NOW, NOW, "")
        if code is None:
            pids[name] = 100 + number
        pods.append(manifest)
    known = {"pods": tuple(pods), "pids": pids, **more}
    return Snapshot(job=digits, status=status, reports={item["task"]: item for item in reports}, **known)
