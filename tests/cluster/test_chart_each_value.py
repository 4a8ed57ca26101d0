# SPDX-License-Identifier: Apache-2.0
"""Each value of the chart changes what helm makes: those with content by this content, switches by themselves."""

import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.support.chart import CHART, MONITORING, RELEASE

DEFAULTS: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())
CONTENT: dict[str, tuple[Any, str]] = {
    "fullnameOverride": ("chosen", "name: chosen"),
    "commonLabels": ({"label-of-all": "a"}, "label-of-all: a"),
    "commonAnnotations": ({"note-of-all": "a"}, "note-of-all: a"),
    "image.registry": ("registry.example", '"registry.example/'),
    "image.repository": ("team/it", "/team/it:"),
    "image.tag": ("v7", ":v7@"),
    "image.digest": (f"sha256:{'7' * 64}", f"@sha256:{'7' * 64}"),
    "image.pullPolicy": ("Always", "imagePullPolicy: Always"),
    "image.pullSecrets": ([{"name": "pull"}], "imagePullSecrets:\n        - name: pull"),
    "operator.replicas": (3, "replicas: 3"),
    "operator.leaderElection.leaseSeconds": (17, "--lease-seconds=17"),
    "operator.watchNamespaces": (["team-a"], "--namespace=team-a"),
    "operator.concurrency": (21, "--concurrency=21"),
    "operator.resyncSeconds": (181, "--resync-seconds=181"),
    "operator.reportSeconds": (6, "--report-seconds=6"),
    "operator.livenessPort": (8085, "--liveness=:8085"),
    "operator.log.level": ("debug", "--log-level=debug"),
    "operator.log.format": ("json", "--log-format=json"),
    "operator.env": ([{"name": "OF_OPERATOR", "value": "a"}], "name: OF_OPERATOR"),
    "operator.volumes": ([{"name": "a-volume", "emptyDir": {}}], "- emptyDir: {}\n          name: a-volume"),
    "operator.volumeMounts": ([{"name": "a-volume", "mountPath": "/mounted"}], "mountPath: /mounted"),
    "operator.resources.requests": ({"cpu": "101m"}, "cpu: 101m"),
    "operator.resources.limits": ({"memory": "1001Mi"}, "memory: 1001Mi"),
    "operator.podSecurityContext.runAsNonRoot": (False, "runAsNonRoot: false"),
    "operator.podSecurityContext.seccompProfile": ({"type": "Unconfined"}, "type: Unconfined"),
    "operator.securityContext.allowPrivilegeEscalation": (True, "allowPrivilegeEscalation: true"),
    "operator.securityContext.readOnlyRootFilesystem": (False, "readOnlyRootFilesystem: false"),
    "operator.securityContext.capabilities": ({"drop": ["NET_RAW"]}, "- NET_RAW"),
    "operator.livenessProbe.initialDelaySeconds": (11, "initialDelaySeconds: 11"),
    "operator.livenessProbe.periodSeconds": (12, "periodSeconds: 12"),
    "operator.livenessProbe.timeoutSeconds": (13, "timeoutSeconds: 13"),
    "operator.livenessProbe.failureThreshold": (14, "failureThreshold: 14"),
    "operator.readinessProbe.periodSeconds": (15, "periodSeconds: 15"),
    "operator.readinessProbe.timeoutSeconds": (16, "timeoutSeconds: 16"),
    "operator.podLabels": ({"label-of-pod": "a"}, "label-of-pod: a"),
    "operator.podAnnotations": ({"note-of-pod": "a"}, "note-of-pod: a"),
    "operator.nodeSelector": ({"pool-of-operator": "a"}, "pool-of-operator: a"),
    "operator.tolerations": ([{"key": "taint-of-operator"}], "key: taint-of-operator"),
    "operator.affinity": ({"podAffinity": {"a": "b"}}, "podAffinity:\n          a: b"),
    "operator.topologySpreadConstraints": ([{"topologyKey": "zone-of-operator"}], "topologyKey: zone-of-operator"),
    "operator.priorityClassName": ("high-operator", 'priorityClassName: "high-operator"'),
    "operator.podDisruptionBudget.maxUnavailable": (7, "maxUnavailable: 7"),
    "jobs.image": ("trainer:8", "--default-image=trainer:8"),
    "jobs.podLabels": ({"label-of-job": "a"}, "--default-pod-label=label-of-job=a"),
    "jobs.podAnnotations": ({"note-of-job": "a"}, r"\"note-of-job\":\"a\""),
    "jobs.imagePullSecrets": ([{"name": "pull-of-job"}], r"\"imagePullSecrets\":[{\"name\":\"pull-of-job\"}]"),
    "jobs.nodeSelector": ({"pool-of-job": "a"}, r"\"nodeSelector\":{\"pool-of-job\":\"a\"}"),
    "jobs.tolerations": ([{"key": "taint-of-job"}], r"\"tolerations\":[{\"key\":\"taint-of-job\"}]"),
    "jobs.priorityClassName": ("high-job", r"\"priorityClassName\":\"high-job\""),
    "jobs.env": ([{"name": "OF_JOB", "value": "a"}], r"\"name\":\"OF_JOB\""),
    "jobs.resources": ({"requests": {"memory": "17Gi"}}, r"\"resources\":{\"requests\":{\"memory\":\"17Gi\"}}"),
    "jobs.podSecurityContext": ({"fsGroup": 17}, r"\"securityContext\":{\"fsGroup\":17}"),
    "jobs.log.level": ("warning", r"{\"name\":\"DTJOB_LOG_LEVEL\",\"value\":\"warning\"}"),
    "jobs.log.format": ("json", r"{\"name\":\"DTJOB_LOG_FORMAT\",\"value\":\"json\"}"),
    "jobs.gangProvider": ("Volcano", "--default-gang-provider=Volcano"),
    "jobs.scrapers": (
        [{"ipBlock": {"cidr": "10.7.0.0/16"}}],
        r"--status-scrapers=[{\"ipBlock\":{\"cidr\":\"10.7.0.0/16\"}}]",
    ),
    "gangs.providers": (["Volcano"], "scheduling.volcano.sh"),
    "gangs.coschedulingScheduler": ("their-scheduler", "--coscheduling-scheduler=their-scheduler"),
    "metrics.port": (8086, "--metrics=:8086"),
    "metrics.scrapers": ([{"ipBlock": {"cidr": "10.8.0.0/16"}}], "cidr: 10.8.0.0/16"),
    "metrics.serviceMonitor.interval": ("37s", "interval: 37s"),
    "metrics.serviceMonitor.labels": ({"label-of-monitor": "a"}, "label-of-monitor: a"),
    "metrics.podMonitor.interval": ("38s", "interval: 38s"),
    "metrics.podMonitor.labels": ({"label-of-pod-monitor": "a"}, "label-of-pod-monitor: a"),
    "metrics.rules.labels": ({"label-of-rules": "a"}, "label-of-rules: a"),
    "metrics.dashboards.labels": ({"label-of-dashboards": "a"}, "label-of-dashboards: a"),
    "rbac.serviceAccount.name": ("an-account", 'name: "an-account"'),
    "rbac.serviceAccount.annotations": ({"note-of-account": "a"}, "note-of-account: a"),
}
"""By its path: another content of a value, and what helm then makes, besides `dtjob` and what is the default."""
MONITORS = ("serviceMonitor", "podMonitor", "rules", "dashboards")
SWITCHES = (
    "operator.leaderElection.enabled",
    "operator.networkPolicy.enabled",
    "operator.podDisruptionBudget.enabled",
    "kueue.enabled",
    "metrics.enabled",
    *(f"metrics.{name}.enabled" for name in MONITORS),
    "rbac.create",
    "rbac.userRoles",
    "rbac.serviceAccount.create",
    "crds.install",
    "crds.keep",
)
NAMES = ("nameOverride",)
"""`test_names_can_be_chosen`: fullnameOverride wins against it."""
NEEDED: dict[str, dict[str, Any]] = {
    "operator.podDisruptionBudget.enabled": {"operator": {"replicas": 2}},
    "rbac.serviceAccount.create": {"rbac": {"serviceAccount": {"name": "an-account"}}},
    "metrics.podMonitor.enabled": {"jobs": {"scrapers": [{"podSelector": {}}]}},
}
"""Other values without which a switch has no effect, or is refused."""


def values_of(paths: Mapping[str, Any]) -> dict[str, Any]:
    """A file of values with these."""
    made: dict[str, Any] = {}
    for path, value in paths.items():
        *above, name = path.split(".")
        inner = made
        for one in above:
            inner = inner.setdefault(one, {})
        inner[name] = value
    return made


def at(path: str) -> Any:
    """The default of a value."""
    found: Any = DEFAULTS
    for name in path.split("."):
        found = found[name]
    return found


def leaves(values: Mapping[str, Any], above: str = "") -> Iterator[str]:
    """The paths of all values; a value with content of its own, such as labels, is one."""
    for name, value in values.items():
        path = f"{above}{name}"
        if isinstance(value, dict) and value and path not in CONTENT:
            yield from leaves(value, f"{path}.")
        else:
            yield path


def rendered(helm: Path, folder: Path, *values: Mapping[str, Any]) -> str:
    """All objects of a release with these values."""
    command = [str(helm), "template", RELEASE, str(CHART), *MONITORING]
    for number, one in enumerate(values):
        (folder / f"{number}.yaml").write_text(yaml.safe_dump(dict(one)))
        command += ["--values", str(folder / f"{number}.yaml")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_all_values_are_in_these_tests() -> None:
    assert set(leaves(DEFAULTS)) == {*CONTENT, *SWITCHES, *NAMES}


def test_the_content_of_each_value_is_in_what_helm_makes(helm_program: Path, tmp_path: Path) -> None:
    wanted = values_of({path: value for path, (value, _) in CONTENT.items()})
    without = {"crds": {"install": False}}  # the definition has many of these words
    made = rendered(helm_program, tmp_path, without, wanted, {"metrics": {one: {"enabled": True} for one in MONITORS}})
    assert {path: text for path, (_, text) in CONTENT.items() if text not in made} == {}
    before = rendered(helm_program, tmp_path, without)
    there = {path for path, (_, text) in CONTENT.items() if text in before}
    assert there == set()


@pytest.mark.parametrize("path", SWITCHES)
def test_each_switch_changes_what_helm_makes(helm_program: Path, tmp_path: Path, path: str) -> None:
    needed = NEEDED.get(path, {})
    assert isinstance(at(path), bool)
    switched = rendered(helm_program, tmp_path, needed, values_of({path: not at(path)}))
    assert switched != rendered(helm_program, tmp_path, needed)
