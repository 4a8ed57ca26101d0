"""The chart's values, by real helm without a cluster: what is refused, and what depends on what."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from dtjob.objects.readers import parse_scrapers
from tests.cluster.support.chart import CHART, RELEASE


def template(helm_program: Path, *values: str) -> subprocess.CompletedProcess[str]:
    settings = [part for value in values for part in ("--set", value)]
    return subprocess.run([helm_program, "template", RELEASE, str(CHART), *settings], capture_output=True, text=True)


def rendered(helm_program: Path, *values: str) -> dict[str, Any]:
    """The objects by kind."""
    done = template(helm_program, *values)
    assert done.returncode == 0, done.stderr
    return {one["kind"]: one for one in yaml.safe_load_all(done.stdout) if one}


def arguments(made: dict[str, Any]) -> list[str]:
    found: list[str] = made["Deployment"]["spec"]["template"]["spec"]["containers"][0]["args"]
    return found


BLOCK = "jobs.scrapers[0].ipBlock.cidr=10.0.0.0/8"


def expression(*fields: str) -> str:
    return ",".join(f"jobs.scrapers[0].podSelector.matchExpressions[0].{field}" for field in ("key=a", *fields))


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("replicas=two", "/replicas"),
        ("replicas=0", "/replicas"),
        ("replicas=2,leaderElection.enabled=false", "/replicas"),
        ("replica=2", "replica"),
        ("image.pullPolicy=Sometimes", "/image/pullPolicy"),
        ("serviceAccount.create=false", "/serviceAccount/name"),
        ("resources.limits.memory=lots", "/resources/limits/memory"),
        ("watchNamespaces={Team_A}", "/watchNamespaces/0"),
        ("operator.livenessPort=80", "/operator/livenessPort"),
        ("metrics.prot=8081", "'prot'"),
        ("metrics.port=80", "/metrics/port"),
        ("metrics.port=8080", "metrics.port and operator.livenessPort are the same"),
        ("metrics.enabled=yes please", "/metrics/enabled"),
        ("metrics.enabled=false,metrics.serviceMonitor.enabled=true", "/metrics/serviceMonitor/enabled"),
        ("metrics.serviceMonitor.interval=often", "/metrics/serviceMonitor/interval"),
        ("metrics.serviceMonitor.enabled=true", "the cluster has no ServiceMonitors"),
        ("networkPolicy.scrapers[0].labels.a=b", "/networkPolicy/scrapers/0"),
        ("jobs.scrapers[0].labels.a=b", "/jobs/scrapers/0"),
        ("jobs.scrapers=prometheus", "/jobs/scrapers"),
        ("jobs.scrapers[0].podSelector.app=a", "jobs.scrapers[0].podSelector.app: a selector has only matchLabels and"),
        ("networkPolicy.scrapers[0].podSelector.app=a", "write {podSelector: {matchLabels: {app: prometheus}}}"),
        ("jobs.scrapers[0].podSelector.matchLabels.tier=5", "/jobs/scrapers/0/podSelector/matchLabels/tier"),
        ("jobs.scrapers[0].podSelector.matchLabels.two words=a", "'two words'"),
        ("jobs.scrapers[0].podSelector.matchExpressions[0].key=a", "missing property 'operator'"),
        (expression("operator=Equals"), "value must be one of 'In', 'NotIn', 'Exists', 'DoesNotExist'"),
        (expression("operator=In"), "missing property 'values'"),
        (expression("operator=Exists", "values={b}"), "/matchExpressions/0/values"),
        ("jobs.scrapers[0].ipBlock.cidr=10.0.0.0", "/jobs/scrapers/0/ipBlock/cidr"),
        ("jobs.scrapers[0].ipBlock.except={10.0.0.0/8}", "missing property 'cidr'"),
        (
            f"{BLOCK},jobs.scrapers[0].namespaceSelector.matchLabels.a=b",
            "jobs.scrapers[0]: ipBlock stands alone in its",
        ),
        ("userRoles.creat=true", "'creat'"),
        ("userRoles.create=maybe", "/userRoles/create"),
        ("defaults.img=a", "'img'"),
        ("defaults.image=two words", "/defaults/image"),
        ("defaults.podLabels.team=two words", "/defaults/podLabels/team"),
        ("defaults.podLabels.two words=a", "'two words'"),
        ("defaults.gangProvider=volcano", "/defaults/gangProvider"),
        ("gangs.providers={Volcano,Volcano}", "/gangs/providers"),
        ("gangs.providers={Kueue}", "/gangs/providers/0"),
        ("gangs.coschedulingScheduler=", "/gangs/coschedulingScheduler"),
        (
            "defaults.gangProvider=Volcano,gangs.providers={Kubernetes}",
            "defaults.gangProvider is Volcano, which gangs.providers does not have: add it there",
        ),
        ("defaults.gangProvider=Volcano,gangs.providers=null", "defaults.gangProvider is Volcano"),
        (r"defaults.podLabels.training\.dtjob\.dev/role=ps", "/defaults/podLabels/training.dtjob.dev~1role"),
    ],
)
def test_a_wrong_value_is_refused_by_name(helm_program: Path, value: str, said: str) -> None:
    done = template(helm_program, value)
    assert done.returncode == 1
    assert said in done.stderr


def test_what_depends_on_the_replicas(helm_program: Path) -> None:
    for replicas in (1, 2):
        made = rendered(helm_program, f"replicas={replicas}")
        assert ("PodDisruptionBudget" in made) == (replicas > 1)
        pod = made["Deployment"]["spec"]["template"]
        assert ("affinity" in pod["spec"]) == (replicas > 1)
        assert pod["metadata"]["labels"]["app.kubernetes.io/name"] == "dtjob"
        assert made["Deployment"]["spec"]["replicas"] == replicas


def test_uninstalling_keeps_the_definition_of_jobs(helm_program: Path) -> None:
    metadata = rendered(helm_program)["CustomResourceDefinition"]["metadata"]
    assert metadata["annotations"]["helm.sh/resource-policy"] == "keep"
    assert "CustomResourceDefinition" not in rendered(helm_program, "crd.install=false")


def test_scrapers_reach_the_metrics_where_there_are_any(helm_program: Path) -> None:
    made = rendered(helm_program)
    assert "--metrics=:8081" in arguments(made)
    (port,) = made["Service"]["spec"]["ports"]
    assert (port["port"], port["targetPort"]) == (8081, "metrics")
    selected = made["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert made["Service"]["spec"]["selector"].items() <= selected.items()
    (rule,) = made["NetworkPolicy"]["spec"]["ingress"]
    assert rule["ports"] == [{"port": "metrics", "protocol": "TCP"}]
    assert rule["from"][0]["podSelector"]["matchLabels"] == {"app.kubernetes.io/name": "prometheus"}
    (everybody,) = rendered(helm_program, "networkPolicy.scrapers=null")["NetworkPolicy"]["spec"]["ingress"]
    assert "from" not in everybody
    off = rendered(helm_program, "metrics.enabled=false")
    assert "Service" not in off
    assert off["NetworkPolicy"]["spec"]["ingress"] == []
    assert not any(argument.startswith("--metrics") for argument in arguments(off))


def test_who_reads_the_status_of_jobs_becomes_options(helm_program: Path) -> None:
    found = arguments(rendered(helm_program))
    assert "--operator-namespace=default" in found
    assert not any(argument.startswith("--status-scrapers") for argument in found)
    values = (
        BLOCK,
        "jobs.scrapers[0].ipBlock.except={10.1.0.0/16}",
        r"jobs.scrapers[1].namespaceSelector.matchLabels.kubernetes\.io/metadata\.name=monitoring",
        expression("operator=NotIn", "values={b}").replace("scrapers[0]", "scrapers[1]"),
    )
    (option,) = [one for one in arguments(rendered(helm_program, *values)) if one.startswith("--status-scrapers=")]
    assert parse_scrapers(option.partition("=")[2]) == (
        {"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}},
        {
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}},
            "podSelector": {"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["b"]}]},
        },
    )


def test_defaults_become_options(helm_program: Path) -> None:
    assert not any(argument.startswith("--default") for argument in arguments(rendered(helm_program)))
    made = rendered(
        helm_program,
        "defaults.image=team/trainer:1",
        "defaults.podLabels.team=vision",
        r"defaults.podLabels.example\.com/cost-centre=cc-7",
    )
    assert {argument for argument in arguments(made) if argument.startswith("--default")} == {
        "--default-image=team/trainer:1",
        "--default-pod-label=team=vision",
        "--default-pod-label=example.com/cost-centre=cc-7",
    }
    volcano = arguments(rendered(helm_program, "defaults.gangProvider=Volcano", "gangs.coschedulingScheduler=mine"))
    assert {"--default-gang-provider=Volcano", "--coscheduling-scheduler=mine"} <= set(volcano)


@pytest.mark.parametrize(
    ("named", "groups"),
    [
        ("", ["scheduling.k8s.io", "scheduling.volcano.sh", "scheduling.x-k8s.io"]),
        ("gangs.providers={Volcano}", ["scheduling.volcano.sh"]),
        ("gangs.providers={Kubernetes,Coscheduling}", ["scheduling.k8s.io", "scheduling.x-k8s.io"]),
        ("gangs.providers=null", []),
    ],
)
def test_rights_to_pod_groups_are_those_of_the_providers(helm_program: Path, named: str, groups: list[str]) -> None:
    made = rendered(helm_program, "userRoles.create=false", *([named] if named else []))
    rules = [rule for rule in made["ClusterRole"]["rules"] if "podgroups" in rule["resources"]]
    assert [group for rule in rules for group in rule["apiGroups"]] == groups
    for rule in rules:
        assert rule["resources"] == ["podgroups"]
        assert rule["verbs"] == ["get", "list", "watch", "create", "update", "delete"]


NO_TEXT = ("Port", "port", "Seconds", "replicas", "Threshold", "weight", "maxUnavailable")
NO_TEXT += ("runAsNonRoot", "Token", "enableServiceLinks", "Escalation", "Filesystem")
"""Fields of the chart that are numbers or truth values."""


@pytest.mark.parametrize("release", ["2024", "1" * 53])
@pytest.mark.parametrize("namespace", ["2024", "no", "0x1f", "2024-01-31"])
def test_names_that_yaml_reads_as_something_else_stay_text(helm_program: Path, release: str, namespace: str) -> None:
    values = [f"watchNamespaces={{{namespace},null}}", "serviceAccount.name=1234", "priorityClassName=off"]
    settings = [part for value in values for part in ("--set-string", value)]
    command = [helm_program, "template", release, str(CHART), "--namespace", namespace, *settings]
    command += ["--set", "replicas=2,kueue.enabled=true,metrics.serviceMonitor.enabled=true"]
    command += ["--api-versions", "monitoring.coreos.com/v1/ServiceMonitor"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    made = [one for one in yaml.safe_load_all(done.stdout) if one and one["kind"] != "CustomResourceDefinition"]
    bound = [one["metadata"]["namespace"] for one in made if one["kind"] == "RoleBinding"]
    assert bound == [namespace, "null", namespace]
    for where, value in leaves(made):
        assert isinstance(value, str) or where.endswith(NO_TEXT), f"{where}: {value!r}"


def leaves(found: Any, where: str = "") -> Iterator[tuple[str, Any]]:
    """Everything that is no object and no list, with where it is."""
    if not isinstance(found, dict | list):
        yield where, found
        return
    for key, value in found.items() if isinstance(found, dict) else enumerate(found):
        yield from leaves(value, f"{where}.{key}")
