# SPDX-License-Identifier: Apache-2.0
"""What the supervisor of each task says of it (contract.md): its state, its step and its speed."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from dtjob.client.cluster import Cluster
from dtjob.client.errors import ClientError
from dtjob.client.verbs.pods import attempt_of, container_state, task_of

Object = Mapping[str, Any]
Reports = dict[str, Object]
"""Task to the report of its supervisor. A task that could not be asked is missing."""
_STATUS_PORT = 2223


def status_port(job: Object) -> int:
    """Where the supervisors of the job answer."""
    return int(((job.get("spec") or {}).get("network") or {}).get("statusPort", _STATUS_PORT))


def read_reports(cluster: Cluster, job: Object, pods: Sequence[Object]) -> tuple[Reports, str]:
    """The reports of those pods that run, and why one could not be read, empty if all could."""
    if not (job.get("spec") or {}).get("program"):
        return {}, ""
    running = [pod for pod in pods if container_state(pod)[0] == "running"]
    return asyncio.run(_all(cluster, status_port(job), running)) if running else ({}, "")


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
