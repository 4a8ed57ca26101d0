# SPDX-License-Identifier: Apache-2.0
"""What the supervisor of each task says of it (contract.md): its state, its step and its speed."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from dtjob.client.cluster import Cluster
from dtjob.client.errors import ClientError
from dtjob.client.verbs.pods import attempt_of, container_state, in_order, newest, state_of, task_of
from dtjob.client.verbs.words import since

Object = Mapping[str, Any]
Reports = dict[str, Object]
"""Task to the report of its supervisor. A task that could not be asked is missing."""
CELLS = ("TASK", "STATE", "STEP", "STEPS/S", "LOSS", "ATTEMPT", "NODE", "AGE")
"""What a row about a task has."""
MOST_TASKS = 24
"""Tasks that are shown, and asked, at most."""
_STATUS_PORT = 2223


def status_port(job: Object) -> int:
    """Where the supervisors of the job answer."""
    return int(((job.get("spec") or {}).get("network") or {}).get("statusPort", _STATUS_PORT))


def read_reports(cluster: Cluster, job: Object, pods: Sequence[Object]) -> tuple[Reports, str]:
    """The reports of those pods that run, and why one could not be read, empty if all could."""
    if not (job.get("spec") or {}).get("program"):
        return {}, ""
    running = [pod for pod in pods if container_state(pod)[0] == "running"]
    if not running:
        return {}, ""
    from dtjob.client.streams import run  # which imports aiohttp

    return run(_all(cluster, status_port(job), running))


def shown_tasks(pods: Sequence[Object]) -> list[Object]:
    """The newest pods of the tasks that have a line of their own."""
    return newest(in_order(pods))[:MOST_TASKS]


def cells(pod: Object, report: Object, now: datetime) -> tuple[str, ...]:
    """A row about the task of a pod. What its supervisor has not reported is empty."""
    runs = container_state(pod)[0] == "running"
    said = report if runs and report.get("attempt") == attempt_of(pod) else {}
    state = state_of(pod)
    return (
        task_of(pod),
        str(said.get("state") or state) if state == "running" else state,
        _number(said.get("step"), "d"),
        _number(said.get("stepsPerSecond"), ".3g"),
        _number(said.get("loss"), ".4g"),
        str(attempt_of(pod)),
        str((pod.get("spec") or {}).get("nodeName") or ""),
        since(pod["metadata"].get("creationTimestamp"), now),
    )


def _number(value: Any, form: str) -> str:
    """The number of a report, which whatever runs in the pod may have written. Empty if it is none."""
    if isinstance(value, bool) or not isinstance(value, int if form == "d" else int | float):
        return ""
    try:
        return format(value, form)
    except OverflowError:
        return ""


async def _all(cluster: Cluster, port: int, pods: Sequence[Object]) -> tuple[Reports, str]:
    found = await asyncio.gather(*(_one(cluster, port, pod) for pod in pods))
    reports = {task_of(pod): one for pod, one in zip(pods, found, strict=True) if not isinstance(one, str)}
    return reports, next((one for one in found if isinstance(one, str)), "")


async def _one(cluster: Cluster, port: int, pod: Object) -> Object | str:
    """The report of a pod, or why there is none."""
    from dtjob.client.streams import answer  # these two import aiohttp, which takes a while
    from dtjob.status_client import NoStatus, parse_report

    name = str(pod["metadata"]["name"])
    try:
        report = parse_report(await answer(cluster, name, port, "/status"))
    except ClientError as error:
        return str(error)
    except NoStatus as error:
        return f"{name}: {error}"
    return report if report.get("attempt") == attempt_of(pod) else f"{name}: another attempt answers there"
