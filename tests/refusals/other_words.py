"""Words of TFJob, of a batch/v1 Job and of JobSet, whose users write dtjobs."""

from __future__ import annotations

from typing import Any

from tests.refusals.failure_rules import codes, on, ruled
from tests.refusals.manifests import Bad, Manifest, bad, job

WORKER = {"replicas": 2, "restartPolicy": "OnFailure"}


def _bad(manifest: Manifest, field: str, mend: str) -> Bad:
    """`kubectl apply` says that there is no such field, `dtjob validate` what to write for it."""
    said = (f"{field}: is an unknown field; ", mend)
    return bad(f"other-words-{field.removeprefix('spec.')}", manifest, f'unknown field "{field}"', or_says=said)


def _policy(**fields: Any) -> Manifest:
    return job(runPolicy=fields)


_SCHEDULING = {"minAvailable": 2, "priorityClass": "high"}
OTHER_WORDS = [
    _bad(job(tfReplicaSpecs={"Worker": WORKER}), "spec.tfReplicaSpecs", "write replicas"),
    _bad(job(enableDynamicWorker=True), "spec.enableDynamicWorker", "replicas.worker.min"),
    *(
        _bad(job(replicas={"chief": {}, word: {}}), f"spec.replicas.{word}", f"write {role}")
        for word, role in {
            "Chief": "chief",
            "Master": "chief",
            "master": "chief",
            "Worker": "worker",
            "PS": "ps",
            "Evaluator": "evaluator",
        }.items()
    ),
    *(
        _bad(job(replicas={"worker": {word: WORKER[word]}}), f"spec.replicas.worker.{word}", f"write {mend}")
        for word, mend in {"replicas": "count", "restartPolicy": "rules with these roles"}.items()
    ),
    _bad(_policy(cleanPodPolicy="None"), "spec.runPolicy.cleanPodPolicy", "write cleanPods"),
    _bad(_policy(backoffLimit=6), "spec.runPolicy.backoffLimit", "write failurePolicy.maxRestarts"),
    _bad(_policy(suspend=True), "spec.runPolicy.suspend", "spec.suspend"),
    _bad(_policy(managedBy="kueue.x-k8s.io/multikueue"), "spec.runPolicy.managedBy", "spec.managedBy"),
    _bad(_policy(schedulingPolicy=_SCHEDULING), "spec.runPolicy.schedulingPolicy", "write scheduling.gang"),
    _bad(job(backoffLimit=6), "spec.backoffLimit", "write failurePolicy.maxRestarts"),
    _bad(job(activeDeadlineSeconds=60), "spec.activeDeadlineSeconds", "runPolicy.activeDeadlineSeconds"),
    _bad(job(ttlSecondsAfterFinished=60), "spec.ttlSecondsAfterFinished", "runPolicy.ttlSecondsAfterFinished"),
    _bad(job(podFailurePolicy={"rules": []}), "spec.podFailurePolicy", "write failurePolicy.rules"),
    _bad(job(parallelism=2), "spec.parallelism", "write replicas.worker.count"),
    _bad(job(completions=2), "spec.completions", "write replicas.worker.count"),
    _bad(job(template={"spec": {}}), "spec.template", "replicas.worker.template"),
    _bad(job(replicatedJobs=[{"name": "workers"}]), "spec.replicatedJobs", "write replicas"),
    _bad(
        ruled(on(targetReplicatedJobs=["workers"], roles=["worker"])),
        "spec.failurePolicy.rules[0].targetReplicatedJobs",
        "write roles",
    ),
    _bad(
        ruled(on(onJobFailureReasons=["PodFailurePolicy"], roles=["worker"])),
        "spec.failurePolicy.rules[0].onJobFailureReasons",
        "write onReasons",
    ),
    _bad(
        ruled({**codes(1), "onExitCodes": {**codes(1)["onExitCodes"], "containerName": "main"}}),
        "spec.failurePolicy.rules[0].onExitCodes.containerName",
        "the training container decides",
    ),
]
