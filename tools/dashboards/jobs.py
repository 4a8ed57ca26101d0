# SPDX-License-Identifier: Apache-2.0
"""The dashboard "dtjob jobs". Metrics with the prefix `dtjob_trainer_` are from the pods of jobs, and all others from
the operator."""

from tools.dashboards.panels import GOOD_AT_ZERO, Dashboard, Panel, Query, Row, Variable

CHOSEN = 'job_namespace=~"$namespace", job_name=~"$job"'
_JOB, _TASK = "{{job_name}}", "{{job_name}} {{task}}"
_BY_JOB, _BY_TASK = "max by (job_namespace, job_name)", "max by (job_namespace, job_name, task)"

_STATS = (
    Panel(
        "Running",
        (Query(f'count(dtjob_job_phase{{{CHOSEN}, phase="Running"}}) or vector(0)'),),
        "Jobs in phase Running.",
        kind="stat",
        width=4,
    ),
    Panel(
        "Waiting",
        (Query(f'count(dtjob_job_phase{{{CHOSEN}, phase!="Running"}}) or vector(0)'),),
        "Jobs in phase Pending, Restarting or Suspended.",
        kind="stat",
        width=4,
        steps=GOOD_AT_ZERO,
    ),
    Panel(
        "Goodput",
        (
            Query(
                f'sum(dtjob_job_time_seconds{{{CHOSEN}, part="kept"}})'
                f' / sum(dtjob_job_time_seconds{{{CHOSEN}, part!="unknown"}})'
            ),
        ),
        "Share of the known time of all chosen jobs that was spent on steps that count.",
        kind="stat",
        unit="percentunit",
        width=4,
        steps=((0.0, "red"), (0.5, "orange"), (0.9, "green")),
    ),
    Panel(
        "Restarts",
        (Query(f"sum(dtjob_job_restarts{{{CHOSEN}}}) or vector(0)"),),
        "Restarts of training in the life of the chosen jobs.",
        kind="stat",
        width=4,
    ),
    Panel(
        "Oldest checkpoint",
        (Query(f"max(time() - dtjob_job_checkpoint_timestamp_seconds{{{CHOSEN}}})"),),
        "Time since the newest checkpoint of the job that saved longest ago. A restart loses at most this time.",
        kind="stat",
        unit="s",
        width=4,
        steps=((0.0, "green"), (7200.0, "orange")),
    ),
    Panel(
        "Status unreachable",
        (Query(f"count(dtjob_job_status_reachable{{{CHOSEN}}} == 0) or vector(0)"),),
        "Jobs whose chief does not tell the operator how far training is.",
        kind="stat",
        width=4,
        steps=GOOD_AT_ZERO,
    ),
)
_PROGRESS = (
    Panel(
        "Steps in a second",
        (Query(f"{_BY_JOB} (dtjob_trainer_steps_per_second{{{CHOSEN}}})", _JOB),),
        "Speed of training, as the tasks of the job report it.",
        unit="short",
    ),
    Panel(
        "Loss",
        (Query(f"{_BY_JOB} (dtjob_trainer_loss{{{CHOSEN}}})", _JOB),),
        "Training loss at the last report.",
        from_zero=False,
    ),
    Panel(
        "Step",
        (Query(f"{_BY_JOB} (dtjob_job_step{{{CHOSEN}}})", _JOB),),
        "Training steps that are done. A restart goes back to the last checkpoint.",
    ),
)
_TIME = (
    Panel(
        "Goodput of each job",
        (Query(f"{_BY_JOB} (dtjob_job_goodput_ratio{{{CHOSEN}}})", _JOB),),
        "Share of the known time of a job that was spent on steps that count.",
        unit="percentunit",
    ),
    Panel(
        "What the time went into",
        (Query(f"sum by (part) (dtjob_job_time_seconds{{{CHOSEN}}})", "{{part}}"),),
        "Time of the chosen jobs since their tasks first ran. docs/jobs/goodput.md explains each part.",
        unit="s",
        stacked=True,
    ),
    Panel(
        "Restarts by cause",
        (Query(f"sum by (cause) (dtjob_job_restarts{{{CHOSEN}}})", "{{cause}}"),),
        "Restarts of training in the life of the chosen jobs, by their cause.",
        stacked=True,
    ),
)
_WAITING = (
    Panel(
        "Jobs by phase",
        (Query(f"count by (phase) (dtjob_job_phase{{{CHOSEN}}})", "{{phase}}"),),
        "Jobs that have not ended, by their phase.",
        stacked=True,
    ),
    Panel(
        "What jobs wait for",
        (Query(f'count by (phase, reason) (dtjob_job_phase{{{CHOSEN}, phase!="Running"}})', "{{phase}}: {{reason}}"),),
        "Jobs that do not run, by the reason of their phase.",
        stacked=True,
    ),
    Panel(
        "What tasks wait for",
        (Query(f"sum by (reason) (dtjob_job_waiting_tasks{{{CHOSEN}}})", "{{reason}}"),),
        "Tasks whose pods do not run yet, by what the pods wait for.",
        stacked=True,
    ),
)
_TABLE = (
    Panel(
        "Jobs",
        (
            Query(f"max by (job_namespace, job_name, phase, reason) (dtjob_job_phase{{{CHOSEN}}})", "Phase"),
            Query(f"{_BY_JOB} (dtjob_job_step{{{CHOSEN}}})", "Step"),
            Query(f"{_BY_JOB} (dtjob_job_total_steps{{{CHOSEN}}})", "Total steps"),
            Query(f"{_BY_JOB} (dtjob_job_goodput_ratio{{{CHOSEN}}})", "Goodput"),
        ),
        "The chosen jobs that have not ended.",
        kind="table",
        width=24,
    ),
)
_TASKS = (
    Panel(
        "Tasks that train",
        (Query(f'{_BY_TASK} (dtjob_trainer_state{{{CHOSEN}, state="training"}})', _TASK),),
        "Whether each task trains. A task starts, saves, evaluates or serves otherwise.",
        kind="state-timeline",
        width=12,
    ),
    Panel(
        "Step of each task",
        (Query(f"{_BY_TASK} (dtjob_trainer_step{{{CHOSEN}}})", _TASK),),
        "Training steps that each task has done.",
        width=12,
    ),
    Panel(
        "Steps in a second of each task",
        (Query(f"{_BY_TASK} (dtjob_trainer_steps_per_second{{{CHOSEN}}})", _TASK),),
        "Speed of each task. Tasks of one group have the same speed.",
    ),
    Panel(
        "Restarts in place of each task",
        (Query(f"{_BY_TASK} (dtjob_trainer_restarts_in_place_total{{{CHOSEN}}})", _TASK),),
        "Restarts of the training process in the container that runs now. A new pod begins at 0.",
    ),
    Panel(
        "Age of the newest checkpoint",
        (Query(f"{_BY_JOB} (time() - dtjob_job_checkpoint_timestamp_seconds{{{CHOSEN}}})", _JOB),),
        "Time since the newest checkpoint was saved.",
        unit="s",
    ),
)

JOBS = Dashboard(
    uid="dtjob-jobs",
    title="dtjob jobs",
    about="Jobs of dtjob that have not ended: how far they are, what their time goes into, and what they wait for.",
    variables=(
        Variable("namespace", "Namespace", "label_values(dtjob_job_phase, job_namespace)"),
        Variable("job", "Job", 'label_values(dtjob_job_phase{job_namespace=~"$namespace"}, job_name)'),
    ),
    rows=(
        Row("Now", _STATS),
        Row("Progress", _PROGRESS),
        Row("Goodput and restarts", _TIME),
        Row("Waiting", _WAITING),
        Row("All jobs", _TABLE),
        Row("Tasks, side by side", _TASKS),
    ),
)
