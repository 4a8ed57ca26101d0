# SPDX-License-Identifier: Apache-2.0
"""The chart's values, by real helm without a cluster: what is refused, and what depends on what."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from dtjob.objects.defaults import PodDefaults
from dtjob.objects.pod.pod import pod as desired_pod
from dtjob.objects.readers import parse_scrapers
from dtjob_trainer.contract import log_line
from tests.cluster.support.chart import CHART, MONITORING, NAMESPACE, RELEASE
from tests.unit.operator import builders
from tools.chart import manifest


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
        ("operator.replicas=two", "/operator/replicas"),
        ("operator.replicas=0", "/operator/replicas"),
        ("operator.replicas=2,operator.leaderElection.enabled=false", "/operator/replicas"),
        ("replica=2", "replica"),
        ("image.pullPolicy=Sometimes", "/image/pullPolicy"),
        ("rbac.serviceAccount.create=false", "/rbac/serviceAccount/name"),
        ("operator.resources.limits.memory=lots", "/operator/resources/limits/memory"),
        ("operator.watchNamespaces={Team_A}", "/operator/watchNamespaces/0"),
        ("operator.livenessPort=80", "/operator/livenessPort"),
        ("metrics.prot=8081", "'prot'"),
        ("metrics.port=80", "/metrics/port"),
        ("metrics.port=8080", "metrics.port and operator.livenessPort are the same"),
        ("metrics.enabled=yes please", "/metrics/enabled"),
        ("metrics.enabled=false,metrics.serviceMonitor.enabled=true", "/metrics/serviceMonitor/enabled"),
        ("metrics.serviceMonitor.interval=often", "/metrics/serviceMonitor/interval"),
        ("metrics.serviceMonitor.enabled=true", "the cluster has no ServiceMonitors"),
        ("metrics.enabled=false,metrics.rules.enabled=true", "/metrics/rules/enabled"),
        ("metrics.enabled=false,metrics.dashboards.enabled=true", "/metrics/dashboards/enabled"),
        ("metrics.rules.enabled=true", "metrics.rules.enabled: the cluster has no PrometheusRules"),
        ("metrics.podMonitor.enabled=true", "because jobs.scrapers is empty. Name its pods there"),
        (f"{BLOCK},metrics.podMonitor.enabled=true", "the cluster has no PodMonitors"),
        ("metrics.podMonitor.interval=often", "/metrics/podMonitor/interval"),
        ("metrics.scrapers[0].labels.a=b", "/metrics/scrapers/0"),
        ("jobs.scrapers[0].labels.a=b", "/jobs/scrapers/0"),
        ("jobs.scrapers=prometheus", "/jobs/scrapers"),
        ("jobs.scrapers[0].podSelector.app=a", "jobs.scrapers[0].podSelector.app: a selector has only matchLabels and"),
        ("metrics.scrapers[0].podSelector.app=a", "write {podSelector: {matchLabels: {app: prometheus}}}"),
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
        ("rbac.creat=true", "'creat'"),
        ("rbac.userRoles=maybe", "/rbac/userRoles"),
        ("jobs.img=a", "'img'"),
        ("jobs.image=two words", "/jobs/image"),
        ("jobs.podLabels.team=two words", "/jobs/podLabels/team"),
        ("jobs.podLabels.two words=a", "'two words'"),
        ("jobs.env[0].name=A,jobs.env[0].valueFrom.secretKeyRef.name=a", "missing property 'key'"),
        ("jobs.env[0].name=A,jobs.env[0].value=b,jobs.env[0].valueFrom.fieldRef.fieldPath=a", "/jobs/env/0"),
        ("jobs.resources.requests.memory=lots", "/jobs/resources/requests/memory"),
        ("jobs.resources.request.memory=1Gi", "'request'"),
        ("jobs.gangProvider=volcano", "/jobs/gangProvider"),
        ("gangs.providers={Volcano,Volcano}", "/gangs/providers"),
        ("gangs.providers={Kueue}", "/gangs/providers/0"),
        ("gangs.coschedulingScheduler=", "/gangs/coschedulingScheduler"),
        (
            "jobs.gangProvider=Volcano,gangs.providers={Kubernetes}",
            "jobs.gangProvider is Volcano, which gangs.providers does not have: add it there",
        ),
        ("jobs.gangProvider=Volcano,gangs.providers=null", "jobs.gangProvider is Volcano"),
        (r"jobs.podLabels.training\.dtjob\.dev/role=ps", "/jobs/podLabels/training.dtjob.dev~1role"),
    ],
)
def test_a_wrong_value_is_refused_by_name(helm_program: Path, value: str, said: str) -> None:
    done = template(helm_program, value)
    assert done.returncode == 1
    assert said in done.stderr


def test_disruption_budget_and_affinity_are_rendered_for_several_replicas(helm_program: Path) -> None:
    for replicas in (1, 2):
        made = rendered(helm_program, f"operator.replicas={replicas}")
        assert ("PodDisruptionBudget" in made) == (replicas > 1)
        pod = made["Deployment"]["spec"]["template"]
        assert ("affinity" in pod["spec"]) == (replicas > 1)
        assert pod["metadata"]["labels"]["app.kubernetes.io/name"] == "dtjob"
        assert made["Deployment"]["spec"]["replicas"] == replicas


def test_uninstalling_keeps_the_definition_of_jobs(helm_program: Path) -> None:
    metadata = rendered(helm_program)["CustomResourceDefinition"]["metadata"]
    assert metadata["annotations"]["helm.sh/resource-policy"] == "keep"
    assert "CustomResourceDefinition" not in rendered(helm_program, "crds.install=false")
    assert "annotations" not in rendered(helm_program, "crds.keep=false")["CustomResourceDefinition"]["metadata"]


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
    (everybody,) = rendered(helm_program, "metrics.scrapers=null")["NetworkPolicy"]["spec"]["ingress"]
    assert "from" not in everybody
    off = rendered(helm_program, "metrics.enabled=false")
    assert "Service" not in off
    assert off["NetworkPolicy"]["spec"]["ingress"] == []
    assert not any(argument.startswith("--metrics") for argument in arguments(off))


def monitoring(helm_program: Path, *values: str) -> dict[tuple[str, str], dict[str, Any]]:
    """The objects by kind and name, with all monitoring."""
    switches = [f"metrics.{one}.enabled=true" for one in ("serviceMonitor", "podMonitor", "rules", "dashboards")]
    settings = [f"--set={value}" for value in (*switches, BLOCK, *values)]
    command = [helm_program, "template", RELEASE, CHART, *MONITORING, *settings]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return {(one["kind"], one["metadata"]["name"]): one for one in yaml.safe_load_all(done.stdout) if one}


def test_nothing_of_monitoring_is_made_where_nobody_asks_for_it(helm_program: Path) -> None:
    assert {"ServiceMonitor", "PodMonitor", "PrometheusRule", "ConfigMap"}.isdisjoint(rendered(helm_program))


def test_monitors_select_the_operator_and_the_pods_of_jobs(helm_program: Path) -> None:
    made = monitoring(helm_program)
    selected = made["ServiceMonitor", RELEASE]["spec"]["selector"]["matchLabels"]
    assert selected.items() <= made["Service", f"{RELEASE}-metrics"]["metadata"]["labels"].items()
    pods = made["PodMonitor", RELEASE]["spec"]
    (label,) = pods["selector"]["matchExpressions"]
    of_task = desired_pod(builders.job(), builders.task("worker-0"), 0)
    assert label["key"] in of_task["metadata"]["labels"]
    (endpoint,) = pods["podMetricsEndpoints"]
    assert endpoint["port"] in [port["name"] for port in of_task["spec"]["containers"][0]["ports"]]
    assert pods["namespaceSelector"] == {"any": True}
    made = monitoring(helm_program, "operator.watchNamespaces={a,b}")
    assert made["PodMonitor", RELEASE]["spec"]["namespaceSelector"] == {"matchNames": ["a", "b"]}


def test_rules_and_dashboards_are_the_files_of_the_chart(helm_program: Path) -> None:
    made = monitoring(helm_program)
    rules = yaml.safe_load((CHART / "files" / "rules.yaml").read_text())
    assert made["PrometheusRule", RELEASE]["spec"] == rules
    for name in ("jobs", "operator"):
        found = made["ConfigMap", f"{RELEASE}-dashboard-{name}"]
        assert found["metadata"]["labels"]["grafana_dashboard"] == "1"
        file = f"dtjob-{name}.json"
        assert found["data"] == {file: (CHART / "files" / "dashboards" / file).read_text()}


def test_jobs_scrapers_become_options_of_the_operator(helm_program: Path) -> None:
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
        "jobs.image=team/trainer:1",
        "jobs.podLabels.team=vision",
        r"jobs.podLabels.example\.com/cost-centre=cc-7",
    )
    assert {argument for argument in arguments(made) if argument.startswith("--default")} == {
        "--default-image=team/trainer:1",
        "--default-pod-label=team=vision",
        "--default-pod-label=example.com/cost-centre=cc-7",
    }
    values = ("gangs.providers={Volcano}", "jobs.gangProvider=Volcano", "gangs.coschedulingScheduler=mine")
    volcano = arguments(rendered(helm_program, *values))
    assert {"--default-gang-provider=Volcano", "--coscheduling-scheduler=mine"} <= set(volcano)


def test_parts_of_pod_templates_become_one_option(helm_program: Path) -> None:
    made = rendered(
        helm_program,
        r"jobs.podAnnotations.example\.com/team=vision",
        "jobs.imagePullSecrets[0].name=registry",
        "jobs.tolerations[0].key=gpu,jobs.tolerations[0].operator=Exists",
        "jobs.nodeSelector.pool=training,jobs.priorityClassName=batch",
        "jobs.env[0].name=A,jobs.env[0].value=<b> & c",
        "jobs.env[1].name=B,jobs.env[1].valueFrom.secretKeyRef.name=pip,jobs.env[1].valueFrom.secretKeyRef.key=url",
        "jobs.resources.requests.cpu=1,jobs.resources.limits.memory=4Gi",
        "jobs.podSecurityContext.runAsNonRoot=true",
    )
    (option,) = [one for one in arguments(made) if one.startswith("--default-pod=")]
    found = PodDefaults.parse(option.partition("=")[2])
    assert found.annotations == {"example.com/team": "vision"}
    assert [one.name for one in found.image_pull_secrets] == ["registry"]
    assert found.tolerations == ({"key": "gpu", "operator": "Exists"},)
    assert (found.node_selector, found.priority_class_name) == ({"pool": "training"}, "batch")
    secret = {"secretKeyRef": {"name": "pip", "key": "url"}}
    assert found.variables([]) == [{"name": "A", "value": "<b> & c"}, {"name": "B", "valueFrom": secret}]
    assert (found.resources.requests, found.resources.limits) == ({"cpu": 1}, {"memory": "4Gi"})
    assert found.security_context == {"runAsNonRoot": True}


def test_the_values_for_production_of_the_readme_are_taken(helm_program: Path, tmp_path: Path) -> None:
    (block,) = re.findall(r"^```yaml\n(.*?)^```", (CHART / "README.md").read_text(), re.M | re.S)
    file = tmp_path / "values.yaml"
    file.write_text(block)
    command = [helm_program, "template", RELEASE, CHART, f"--values={file}", *MONITORING]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    made = {one["kind"]: one for one in yaml.safe_load_all(done.stdout) if one}
    assert {"PodDisruptionBudget", "ServiceMonitor", "PodMonitor", "PrometheusRule", "ConfigMap"} <= made.keys()
    (option,) = [one for one in arguments(made) if one.startswith("--default-pod=")]
    assert PodDefaults.parse(option.partition("=")[2]).resources.requests == {"cpu": 1, "memory": "4Gi"}


def test_the_log_has_a_level_and_a_format(helm_program: Path) -> None:
    assert {"--log-level=info", "--log-format=text"} <= set(arguments(rendered(helm_program)))
    chosen = rendered(helm_program, "operator.log.level=debug", "operator.log.format=json")
    assert {"--log-level=debug", "--log-format=json"} <= set(arguments(chosen))


def test_the_log_of_training_pods_has_a_level_and_a_format(helm_program: Path) -> None:
    made = rendered(helm_program, "jobs.log.level=warning", "jobs.log.format=json")
    (option,) = [one for one in arguments(made) if one.startswith("--default-pod=")]
    found = PodDefaults.parse(option.partition("=")[2])
    assert {one.name: one.value for one in found.env} == {log_line.LEVEL: "warning", log_line.FORMAT: "json"}


@pytest.mark.parametrize(
    ("values", "image"),
    [
        ((), "dtjob-operator:0.1.0"),
        (("image.registry=REGISTRY/team/", "image.tag=a"), "REGISTRY/team/dtjob-operator:a"),
        ((f"image.digest=sha256:{'0' * 64}",), f"dtjob-operator:0.1.0@sha256:{'0' * 64}"),
    ],
)
def test_the_image_has_a_registry_a_tag_and_a_digest(helm_program: Path, values: tuple[str, ...], image: str) -> None:
    pod = rendered(helm_program, *values)["Deployment"]["spec"]["template"]["spec"]
    assert pod["containers"][0]["image"] == image


@pytest.mark.parametrize(
    ("value", "name"), [("nameOverride=training", "dtjob-training"), ("fullnameOverride=it", "it")]
)
def test_names_can_be_chosen(helm_program: Path, value: str, name: str) -> None:
    deployment = rendered(helm_program, value)["Deployment"]
    assert deployment["metadata"]["name"] == name
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert labels["app.kubernetes.io/name"] == "dtjob"  # jobs' NetworkPolicies know the operator by it


def test_common_labels_and_annotations_are_on_every_object(helm_program: Path) -> None:
    values = ("commonLabels.team=ml", "commonAnnotations.owner=ml", "operator.replicas=2")
    done = template(helm_program, *values, r"commonLabels.app\.kubernetes\.io/name=other")
    assert done.returncode == 0, done.stderr
    made = [one for one in yaml.safe_load_all(done.stdout) if one and one["kind"] != "CustomResourceDefinition"]
    for one in made:
        if "helm.sh/hook" in one["metadata"].get("annotations", {}):
            continue
        assert one["metadata"]["labels"]["team"] == "ml", one["kind"]
        assert one["metadata"]["labels"]["app.kubernetes.io/name"] == "dtjob"
        assert one["metadata"]["annotations"]["owner"] == "ml", one["kind"]


def test_the_pod_of_the_operator_takes_what_a_pod_takes(helm_program: Path) -> None:
    deployment = rendered(
        helm_program,
        "operator.env[0].name=HTTPS_PROXY,operator.env[0].value=http://proxy",
        "operator.volumes[0].name=ca,operator.volumes[0].configMap.name=ca",
        "operator.volumeMounts[0].name=ca,operator.volumeMounts[0].mountPath=/ca",
        "operator.topologySpreadConstraints[0].topologyKey=zone",
        "operator.podSecurityContext.fsGroup=5,operator.livenessProbe.periodSeconds=60,operator.concurrency=3",
    )
    pod = deployment["Deployment"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["env"] == [{"name": "HTTPS_PROXY", "value": "http://proxy"}]
    assert container["volumeMounts"] == [{"name": "ca", "mountPath": "/ca"}]
    assert pod["volumes"] == [{"name": "ca", "configMap": {"name": "ca"}}]
    assert pod["topologySpreadConstraints"] == [{"topologyKey": "zone"}]
    assert (pod["securityContext"]["fsGroup"], pod["securityContext"]["runAsNonRoot"]) == (5, True)
    assert container["livenessProbe"]["periodSeconds"] == 60
    assert "--concurrency=3" in container["args"]


def test_rights_can_be_left_to_the_administrator(helm_program: Path) -> None:
    kinds = {"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}
    assert not kinds & set(rendered(helm_program, "rbac.create=false"))
    assert kinds <= set(rendered(helm_program))


def test_the_chart_passes_strict_lint(helm_program: Path) -> None:
    done = subprocess.run([helm_program, "lint", "--strict", str(CHART)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_the_plain_manifest_has_the_namespace_first_and_no_hook(helm_program: Path) -> None:
    made = [one for one in yaml.safe_load_all(manifest(helm_program)) if one]
    assert (made[0]["kind"], made[0]["metadata"]["name"]) == ("Namespace", NAMESPACE)
    assert {"CustomResourceDefinition", "Deployment", "ClusterRole", "ServiceAccount"} <= {one["kind"] for one in made}
    for one in made:
        assert "helm.sh/hook" not in one["metadata"].get("annotations", {})
        assert one["metadata"].get("namespace", NAMESPACE) == NAMESPACE


@pytest.mark.parametrize(
    ("named", "groups"),
    [
        ("", ["scheduling.k8s.io"]),
        ("gangs.providers={Volcano}", ["scheduling.volcano.sh"]),
        ("gangs.providers={Kubernetes,Coscheduling}", ["scheduling.k8s.io", "scheduling.x-k8s.io"]),
        ("gangs.providers=null", []),
    ],
)
def test_rights_to_pod_groups_are_those_of_the_providers(helm_program: Path, named: str, groups: list[str]) -> None:
    made = rendered(helm_program, "rbac.userRoles=false", *([named] if named else []))
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
    values = [
        f"operator.watchNamespaces={{{namespace},null}}",
        "rbac.serviceAccount.name=1234",
        "operator.priorityClassName=off",
    ]
    settings = [part for value in values for part in ("--set-string", value)]
    command = [helm_program, "template", release, str(CHART), "--namespace", namespace, *settings]
    command += ["--set", f"operator.replicas=2,kueue.enabled=true,{BLOCK}", *MONITORING]
    command += [f"--set=metrics.{one}.enabled=true" for one in ("serviceMonitor", "podMonitor", "rules", "dashboards")]
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
