# SPDX-License-Identifier: Apache-2.0
"""Grace periods and preStop hooks that would leave a save too little time."""

from typing import Any

from tests.refusals.manifests import CHECKPOINT, Manifest, bad, bad_in, job

ADVICE = ("remove it, increase it", "checkpoint.saveTimeoutSeconds")


def saving(role: str = "chief", hook: Manifest | None = None, **spec: Any) -> Manifest:
    """A job whose role has this in its template, the hook in its training container."""
    strategy = "ParameterServer" if role == "ps" else "MultiWorkerMirrored"
    training = [{"name": "tensorflow", "lifecycle": {"preStop": hook}}] if hook else []
    containers = {"containers": [*training, {"name": "log", "image": "b"}]}
    template = {"template": {"spec": {**containers, **spec}}}
    replicas: Manifest = {"chief": {}, "worker": {}, **({"ps": {}} if role == "ps" else {}), role: template}
    return job(strategy, replicaSpecs=replicas, checkpoint=CHECKPOINT)


def pod_of(role: str) -> str:
    return f"spec.replicaSpecs.{role}.template.spec"


SLEEP = {"sleep": {"seconds": 30}}
EXEC = {"exec": {"command": ["sleep", "30"]}}

GRACE = [
    *(
        bad_in(
            pod_of(role),
            f"grace-shorter-than-a-save-{role}",
            saving(role, terminationGracePeriodSeconds=59),
            "terminationGracePeriodSeconds",
            *ADVICE,
        )
        for role in ("chief", "worker", "ps")
    ),
    bad_in(
        pod_of("chief"),
        "grace-shorter-than-sleep-and-save",
        saving(hook=SLEEP, terminationGracePeriodSeconds=89),
        "terminationGracePeriodSeconds",
        *ADVICE,
    ),
    bad(
        "grace-as-text",
        saving(terminationGracePeriodSeconds="90"),
        f"{pod_of('chief')}.terminationGracePeriodSeconds",
        "must be of type integer",
        or_says=(f"{pod_of('chief')}.terminationGracePeriodSeconds", "must be a whole number"),
    ),
    *(
        bad_in(
            pod_of(role),
            f"preStop-of-unknown-length-{role}",
            saving(role, hook=EXEC),
            "containers",
            "use preStop.sleep",
        )
        for role in ("chief", "worker", "ps")
    ),
]

GRACE_TAKEN: dict[str, Manifest] = {
    "grace-as-long-as-a-save": saving(terminationGracePeriodSeconds=60),
    "grace-as-long-as-sleep-and-save": saving(hook=SLEEP, terminationGracePeriodSeconds=90),
    "sleep-alone": saving(hook=SLEEP),
    "hook-of-a-sidecar": saving(containers=[{"name": "log", "image": "b", "lifecycle": {"preStop": EXEC}}]),
    "short-grace-without-checkpoints": {
        **(free := saving(hook=EXEC, terminationGracePeriodSeconds=5)),
        "spec": {name: value for name, value in free["spec"].items() if name != "checkpoint"},
    },
    "short-grace-of-another-image": {
        **(other := saving(hook=EXEC, terminationGracePeriodSeconds=5)),
        "spec": {name: value for name, value in other["spec"].items() if name != "program"},
    },
}
