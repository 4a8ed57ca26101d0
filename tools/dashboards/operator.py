# SPDX-License-Identifier: Apache-2.0
"""The dashboard "dtjob operator"."""

from tools.dashboards.panels import Dashboard, Panel, Query, Row

_OURS = "and on (instance, job) dtjob_build_info"
"""Of the processes that Prometheus scrapes, the operator's."""
_RATE = "[$__rate_interval]"


def _quantile(part: float) -> str:
    return f"histogram_quantile({part}, sum by (le) (rate(dtjob_reconcile_duration_seconds_bucket{_RATE})))"


_STATS = (
    Panel(
        "Leaders",
        (Query("sum(dtjob_leader) or vector(0)"),),
        "Operators that work. One works, and all others stand by.",
        kind="stat",
        width=4,
        steps=((0.0, "red"), (1.0, "green"), (2.0, "red")),
    ),
    Panel("Jobs", (Query("sum(dtjob_jobs)"),), "Jobs that exist, ended ones too.", kind="stat", width=4),
    Panel(
        "Queue",
        (Query("sum(dtjob_workqueue_depth)"),),
        "Jobs that wait for a worker of the queue.",
        kind="stat",
        width=4,
        steps=((0.0, "green"), (20.0, "orange")),
    ),
    Panel(
        "Reconcile, 99 %",
        (Query(_quantile(0.99)),),
        "99 % of all reconciles take less, with their calls to the API server.",
        kind="stat",
        unit="s",
        width=4,
    ),
    Panel(
        "Failed calls",
        (Query(f'sum(rate(dtjob_api_requests_total{{code!~"2.."}}{_RATE})) or vector(0)'),),
        "Calls to the API server in a second that did not succeed. A few 404 and 409 are normal.",
        kind="stat",
        unit="reqps",
        width=4,
    ),
    Panel(
        "Last listing",
        (Query("min(time() - dtjob_last_resync_timestamp_seconds and dtjob_leader == 1)"),),
        "Time since the operator that works last listed all jobs.",
        kind="stat",
        unit="s",
        width=4,
        steps=((0.0, "green"), (900.0, "orange")),
    ),
)
_WORK = (
    Panel(
        "Queue",
        (Query("max by (instance) (dtjob_workqueue_depth)", "{{instance}}"),),
        "Jobs that wait for a worker of the queue.",
    ),
    Panel(
        "Reconciles by result",
        (Query(f"sum by (result) (rate(dtjob_reconciles_total{_RATE}))", "{{result}}"),),
        "Reconciles in a second. A stale one met a newer version of the job. A failed call is tried again.",
        unit="ops",
        stacked=True,
    ),
    Panel(
        "Duration of a reconcile",
        tuple(Query(_quantile(part), f"{part:.0%}") for part in (0.5, 0.9, 0.99)),
        "So many of all reconciles take less, with their calls to the API server.",
        unit="s",
    ),
)
_CALLS = (
    Panel(
        "Calls to the API server",
        (Query(f"sum by (method, resource) (rate(dtjob_api_requests_total{_RATE}))", "{{method}} {{resource}}"),),
        "Calls in a second, without watches.",
        unit="reqps",
        width=12,
        stacked=True,
    ),
    Panel(
        "Calls that did not succeed",
        (
            Query(
                f'sum by (method, resource, code) (rate(dtjob_api_requests_total{{code!~"2.."}}{_RATE}))',
                "{{method}} {{resource}}: {{code}}",
            ),
        ),
        "Calls in a second by their answer. The code is <error> if no answer came.",
        unit="reqps",
        width=12,
        stacked=True,
    ),
)
_JOBS = (
    Panel(
        "Jobs by phase",
        (Query("sum by (phase) (dtjob_jobs)", "{{phase}}"),),
        "Jobs that exist, by their phase.",
        stacked=True,
    ),
    Panel(
        "Restarts by cause",
        (Query(f"sum by (cause) (increase(dtjob_restarts_total{_RATE}))", "{{cause}}"),),
        "Restarts of training of all jobs, by the cause that was known first.",
        stacked=True,
    ),
    Panel(
        "Leader",
        (Query("max by (instance) (dtjob_leader)", "{{instance}}"),),
        "Which operator works.",
        kind="state-timeline",
    ),
)
_PROCESS = (
    Panel(
        "Memory",
        (Query(f"process_resident_memory_bytes {_OURS}", "{{instance}}"),),
        "Resident memory of each operator.",
        unit="bytes",
    ),
    Panel(
        "CPU",
        (Query(f"rate(process_cpu_seconds_total{_RATE}) {_OURS}", "{{instance}}"),),
        "Cores that each operator uses.",
    ),
    Panel(
        "Open files",
        (Query(f"process_open_fds {_OURS}", "{{instance}}"),),
        "Files and connections that each operator has open.",
    ),
)

OPERATOR = Dashboard(
    uid="dtjob-operator",
    title="dtjob operator",
    about="The operator of dtjob: what it has to do, how long that takes, and its calls to the API server.",
    variables=(),
    rows=(
        Row("Now", _STATS),
        Row("Work", _WORK),
        Row("Calls", _CALLS),
        Row("Jobs", _JOBS),
        Row("Processes", _PROCESS),
    ),
)
