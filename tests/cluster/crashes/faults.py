# SPDX-License-Identifier: Apache-2.0
"""What can befall one call of the operator's, and how a call is found again in another life of the same job."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from tests.cluster.support.api_proxy import Answer, Call, Hangs, Lost, Verdict, Watched

OF_A_CLUSTER = ("localqueues", "clusterqueues", "resourceflavors", "workloadpriorityclasses", "priorityclasses")
"""What no job has for itself."""
HASHED = ("configmaps", "workloads")
"""Their names end with a hash of what is another in each life."""
BY_KOPF = " by kopf"
LAG = 2
"""How many changes of jobs and pods a lagging API server does not have yet."""


class What(StrEnum):
    """What befalls a call. All but the first three are about the operator that made it, which lives on."""

    KILLED = "killed after it"
    STALE_JOBS = "killed after it, and then a stale list of jobs"
    STALE_OTHERS = "killed after it, and then stale lists of all but jobs"
    CONFLICT = "409"
    GONE = "410"
    TOO_MANY = "429 with Retry-After"
    ERROR = "500"
    UNAVAILABLE = "503"
    RESET_BEFORE = "connection reset before it"
    RESET_AFTER = "connection reset after it"
    TIMEOUT = "timeout after it"
    CUT = "watch cut"
    SILENT = "watch silent"
    EXPIRED = "watch expired"


KILLS = (What.KILLED, What.STALE_JOBS, What.STALE_OTHERS)
OF_CHANGES = (
    What.CONFLICT,
    What.GONE,
    What.TOO_MANY,
    What.ERROR,
    What.UNAVAILABLE,
    What.RESET_BEFORE,
    What.RESET_AFTER,
    What.TIMEOUT,
)
OF_READS = (What.GONE, What.TOO_MANY, What.ERROR, What.UNAVAILABLE, What.RESET_BEFORE, What.TIMEOUT)
OF_EVENTS = (What.CUT, What.SILENT, What.EXPIRED)
ANSWERS = {
    What.CONFLICT: Answer(409, "Conflict"),
    What.GONE: Answer(410, "Expired"),
    What.TOO_MANY: Answer(429, "TooManyRequests", retry_after=1),
    What.ERROR: Answer(500, "InternalError"),
    What.UNAVAILABLE: Answer(503, "ServiceUnavailable"),
}


@dataclass(frozen=True)
class Step:
    """The n-th call of its kind in a life, or one event of a watch.

    `job`: whether it is about the job alone, and not about the whole namespace. `name`: what it is about, without the
    job's name. `event`: which event of a watch, from 0; -1: its beginning.
    """

    method: str
    resource: str
    name: str = ""
    job: bool = False
    n: int = 1
    event: int = -1

    @property
    def changes(self) -> bool:
        """Whether the call is one that changes something."""
        return self.method in ("POST", "PUT", "PATCH", "DELETE")

    def __str__(self) -> str:
        event = f", event {self.event}" if self.event >= 0 else ""
        return f"{self.method} {self.resource} {self.name}".strip() + f" ({self.n}){event}"


def step_of(call: Call) -> tuple[str, Step]:
    """The job that this call is about (empty: the whole namespace), and its step as the first of its kind. Names of
    jobs have no dash here."""
    if "watch=" in call.query:
        return "", Step("WATCH", call.resource)
    plural = call.resource.partition("/")[0]
    if call.method == "GET" and (plural == "<discovery>" or call.path.endswith(f"/{plural}")):
        return "", Step("LIST", call.path if plural == "<discovery>" else plural + BY_KOPF * call.by_kopf)
    body = call.body or {}
    if plural == "events":
        job = (body.get("involvedObject") or {}).get("name") or call.name.partition(".")[0]
        return job, Step(call.method, call.resource, body.get("reason", ""), job=True)
    if plural in OF_A_CLUSTER:
        return "", Step(call.method, call.resource, call.name)
    job, _, rest = call.name.removeprefix("distributedtrainingjob-").partition("-")
    if plural in HASHED:
        rest = ""
    if call.method == "PUT":
        rest = (body.get("status") or {}).get("phase", rest)
    return job, Step(call.method, call.resource, rest, job=True)


def faults_of(step: Step) -> tuple[What, ...]:
    """All that can befall this step, but for kills. An Event that is refused is not recorded, as with client-go."""
    if step.event >= 0:
        return OF_EVENTS
    found = OF_CHANGES if step.changes else OF_READS
    refusals = (What.CONFLICT, What.GONE) if step.resource == "events" else ()
    return tuple(one for one in found if one not in refusals)


def verdict(what: What, step: Step, kill: Callable[[], None]) -> Verdict:
    """What the proxy is to do."""
    if what in ANSWERS:
        return ANSWERS[what]
    others: dict[What, Verdict] = {
        What.RESET_BEFORE: lambda: None,
        What.RESET_AFTER: Lost(lambda: None),
        What.TIMEOUT: Hangs(),
        What.CUT: Watched(step.event, "cut"),
        What.SILENT: Watched(step.event, "silent"),
        What.EXPIRED: Watched(step.event, "expired"),
    }
    return others.get(what, Lost(kill))
