# SPDX-License-Identifier: Apache-2.0
"""The life of a job as a whole: suspension, who manages it, deadlines, and how long it stays after its end."""

from typing import Any

from tests.refusals.manifests import CHECKPOINT, Bad, Manifest, bad, bad_in, changed, job, warned

SECONDS = ("activeDeadlineSeconds", "startDeadlineSeconds")
TIME_TO_LIVE = "ttlSecondsAfterFinished"
_PATH = "must be a domain-prefixed path, such as kueue.x-k8s.io/multikueue"


def _run(**policy: Any) -> Manifest:
    return job(**policy)


def _number(name: str, field: str, made: Any) -> list[Bad]:
    """What no number of seconds is; `made` gives the manifest with such a value."""
    return [
        bad(
            f"{name}-as-text",
            made("60"),
            field,
            "must be of type integer",
            or_says=(f"{field}: must be a whole number",),
        ),
        bad(
            f"{name}-in-parts",
            made(1.5),
            field,
            "must be of type integer",
            or_says=(f"{field}: must be a whole number",),
        ),
        bad(
            f"{name}-beyond-all-time",
            made(2**31),
            field,
            "should be less than or equal to 2147483647",
            or_says=(f"{field}: must be at most 2147483647",),
        ),
        bad(
            f"{name}-negative",
            made(-1),
            field,
            "should be greater than or equal to",
            or_says=(f"{field}: must be at least",),
        ),
    ]


LIFE = [
    *(row for name in SECONDS for row in _number(name, f"spec.{name}", lambda v, n=name: _run(**{n: v}))),
    *(
        bad(
            f"{name}-0",
            _run(**{name: 0}),
            f"spec.{name}",
            "should be greater than or equal to 1",
            or_says=(f"spec.{name}: must be at least 1",),
        )
        for name in SECONDS
    ),
    *(
        warned(
            bad(
                f"start-deadline-{start}-of-60",
                _run(activeDeadlineSeconds=60, startDeadlineSeconds=start),
                "spec.startDeadlineSeconds",
                "must be less than activeDeadlineSeconds",
            )
        )
        for start in (60, 61)
    ),
    *_number(TIME_TO_LIVE, f"spec.{TIME_TO_LIVE}", lambda value: _run(**{TIME_TO_LIVE: value})),
    bad(
        "ttl-by-outcome",
        _run(ttlSecondsAfterFinished={"succeeded": 3600}),
        'unknown field "spec.ttlSecondsAfterFinished.succeeded"',
        or_says=("spec.ttlSecondsAfterFinished: must be a whole number",),
    ),
    bad(
        "suspend-as-text",
        job(suspend="yes"),
        "spec.suspend",
        "must be of type boolean",
        or_says=("spec.suspend: must be true or false, not 'yes'",),
    ),
    bad(
        "suspend-as-number",
        job(suspend=1),
        "spec.suspend",
        "must be of type boolean",
        or_says=("spec.suspend: must be true or false",),
    ),
    bad(
        "managed-by-a-list",
        job(managedBy=["kueue.x-k8s.io/multikueue"]),
        "spec.managedBy",
        "must be of type string",
        or_says=("spec.managedBy: must be text",),
    ),
    bad(
        "managed-by-a-long-name",
        job(managedBy=f"a.b/{'c' * 60}"),
        "spec.managedBy",
        "may not be more than 63",
        or_says=("spec.managedBy: must have at most 63",),
    ),
    *(
        bad(f"managed-by-{name}", job(managedBy=value), "spec.managedBy", _PATH)
        for name, value in (
            ("nobody", ""),
            ("no-path", "kueue.x-k8s.io"),
            ("an-empty-path", "kueue.x-k8s.io/"),
            ("no-domain", "/multikueue"),
            ("capitals", "Kueue.x-k8s.io/multikueue"),
            ("a-dash-at-the-end", "kueue-/multikueue"),
            ("two-dots", "kueue..io/multikueue"),
            ("a-space", "kueue.x-k8s.io/multi kueue"),
            ("two-lines", "kueue.x-k8s.io/multi\nkueue"),
            ("a-line-that-ends", "kueue.x-k8s.io/multikueue\n"),
            ("a-question", "kueue.x-k8s.io/multi?kueue"),
        )
    ),
]

LIFE_TAKEN = {
    "suspended": job(suspend=True),
    "not-suspended": job(suspend=False),
    "managed-by-kueue": job(managedBy="kueue.x-k8s.io/multikueue"),
    "managed-by-dtjob": job(managedBy="training.dtjob.dev/dtjob-controller"),
    "managed-by-a-path": job(managedBy="a/b/c~d%20;e=f:g"),
    "deadlines": _run(activeDeadlineSeconds=86400, startDeadlineSeconds=1800),
    "longest-deadline": _run(activeDeadlineSeconds=2**31 - 1),
    "deleted-at-once": _run(ttlSecondsAfterFinished=0),
}

TEMPLATE: Manifest = {
    "metadata": {"labels": {"team": "vision"}},
    "spec": {
        "nodeSelector": {"pool": "small"},
        "tolerations": [{"key": "a", "operator": "Exists"}],
        "containers": [
            {"name": "tensorflow", "image": "own:1", "env": [{"name": "A", "value": "1"}]},
            {"name": "log", "image": "log:1", "args": ["-f"], "resources": {"limits": {"cpu": "1"}}},
        ],
    },
}
SUSPENDED = job(
    image=...,
    suspend=True,
    replicaSpecs={"chief": {}, "worker": {"replicas": 2, "template": TEMPLATE, "resources": {"limits": {"cpu": "1"}}}},
    checkpoint=CHECKPOINT,
)
"""A suspended job that has never run, which the changes below change."""


def _worker(*path: Any, to: Any, **spec: Any) -> Manifest:
    """SUSPENDED with the field at this path of its worker set to `to`; `...` removes it."""
    whole = changed(SUSPENDED, "spec", "replicaSpecs", "worker", *path, to=to)
    whole["spec"] |= spec
    return whole


_POD = ("template", "spec")
_TRAINING, _LOG = (*_POD, "containers", 0), (*_POD, "containers", 1)
_AFFINITY = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}
SUSPENDED_CHANGES_TAKEN = {
    "suspended-node-selector": _worker(*_POD, "nodeSelector", to={"pool": "large"}),
    "suspended-no-node-selector": _worker(*_POD, "nodeSelector", to=...),
    "suspended-tolerations": _worker(*_POD, "tolerations", to=[]),
    "suspended-affinity": _worker(*_POD, "affinity", to=_AFFINITY),
    "suspended-scheduling-gates": _worker(*_POD, "schedulingGates", to=[{"name": "a.b/c"}]),
    "suspended-labels": _worker("template", "metadata", "labels", to={"team": "audio"}),
    "suspended-annotations": _worker("template", "metadata", "annotations", to={"a": "b"}),
    "suspended-resources": _worker("resources", to={"limits": {"cpu": "2"}, "requests": {"memory": "1Gi"}}),
    "suspended-resources-of-a-sidecar": _worker(*_LOG, "resources", to={"limits": {"cpu": "2"}}),
    "suspended-longer-grace": _worker(*_POD, "terminationGracePeriodSeconds", to=120),
    "suspended-and-goes-on": _worker(*_POD, "nodeSelector", to={"pool": "large"}, suspend=False),
}
_STAYS = ("spec.replicaSpecs", "cannot be changed: delete the job and create it again")
SUSPENDED_CHANGES = [
    bad_in(
        "spec.replicaSpecs.worker.template.spec",
        "suspended-grace-shorter-than-a-save",
        _worker(*_POD, "terminationGracePeriodSeconds", to=5),
        "terminationGracePeriodSeconds",
        "is shorter than a save (checkpoint.saveTimeoutSeconds",
    ),
    bad_in(
        "spec.replicaSpecs.worker.template.spec",
        "suspended-preStop-of-unknown-length",
        _worker(*_TRAINING, "lifecycle", to={"preStop": {"exec": {"command": ["sleep", "30"]}}}),
        "containers",
        "use preStop.sleep",
    ),
    bad("suspended-replicas", _worker("replicas", to=3), *_STAYS),
    bad("suspended-image", _worker(*_TRAINING, "image", to="own:2"), *_STAYS),
    bad("suspended-no-image", _worker(*_TRAINING, "image", to=...), *_STAYS),
    bad("suspended-env", _worker(*_TRAINING, "env", to=[{"name": "A", "value": "2"}]), *_STAYS),
    bad("suspended-args", _worker(*_LOG, "args", to=["-n"]), *_STAYS),
    bad("suspended-command", _worker(*_LOG, "command", to=["tail"]), *_STAYS),
    bad("suspended-no-containers", _worker(*_POD, "containers", to=...), *_STAYS),
    bad("suspended-one-container-less", _worker(*_POD, "containers", to=TEMPLATE["spec"]["containers"][:1]), *_STAYS),
    bad("suspended-container-renamed", _worker(*_LOG, "name", to="logs"), *_STAYS),
    bad("suspended-template-gone", _worker("template", to=...), *_STAYS),
]
