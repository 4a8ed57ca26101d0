# SPDX-License-Identifier: Apache-2.0
"""`--default-image`, `--default-pod-label` and `--default-gang-provider`, and `dtjob explain --cluster`."""

import json
from pathlib import Path
from typing import Any

import pytest

from dtjob.bad_input import BadInput
from dtjob.cli.commands.default_options import defaults
from tests.unit.operator.client.api_server import ApiServer

DEPLOYMENTS = "GET /apis/apps/v1/deployments"


def test_given_defaults_are_used() -> None:
    made = defaults("registry:5000/trainer@sha256:0", ["team=vision", "example.com/queue=a"])
    assert made.image == "registry:5000/trainer@sha256:0"
    assert made.pod_labels == {"team": "vision", "example.com/queue": "a"}
    assert (defaults(None, []).image, defaults(None, []).pod_labels) == (None, {})


def test_a_text_that_is_no_gang_provider_is_refused() -> None:
    assert [defaults(None, [], given).gang_provider for given in (None, "Volcano")] == ["Kubernetes", "Volcano"]
    with pytest.raises(BadInput, match="--default-gang-provider: 'kubernetes' is none; write one of Kubernetes, Vol"):
        defaults(None, [], "kubernetes")


def deployment(*arguments: str) -> dict[str, Any]:
    return {"spec": {"template": {"spec": {"containers": [{"args": list(arguments)}]}}}}


def test_the_operators_defaults_are_filled_in(dtjob, server: ApiServer, without_image: Path, tmp_path: Path) -> None:
    words = ("operator", "--default-image=registry.example/a:1", "--default-pod-label", "team=x")
    words += ('--default-pod={"nodeSelector": {"pool": "training"}}',)
    server.answer(DEPLOYMENTS, {"items": [deployment(*words)]})
    kubeconfig = server.kubeconfig(tmp_path)
    code, out, err = dtjob("explain", without_image, "--cluster", "-o", "json", "--kubeconfig", kubeconfig)
    assert (code, err) == (0, "")
    pods = [one for one in json.loads(out)["objects"] if one["kind"] == "Pod"]
    assert {one["metadata"]["namespace"] for one in pods} == {"team"}
    assert {one["metadata"]["labels"]["team"] for one in pods} == {"x"}
    assert {one["spec"]["containers"][0]["image"] for one in pods} == {"registry.example/a:1"}
    assert {one["spec"]["nodeSelector"]["pool"] for one in pods} == {"training"}


@pytest.mark.parametrize(
    ("code", "answer", "said"),
    [(403, {"message": "forbidden"}, "may not look at the operator"), (200, {"items": []}, "has no operator")],
)
def test_explain_names_defaults_of_the_cluster_that_cannot_be_read(
    dtjob, server: ApiServer, good: Path, tmp_path: Path, code: int, answer: Any, said: str
) -> None:
    server.answer(DEPLOYMENTS, answer, code=code)
    done = dtjob("explain", good, "--cluster", "--kubeconfig", server.kubeconfig(tmp_path))
    assert done[0] == 0
    assert said in done[2]
