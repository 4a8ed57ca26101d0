# SPDX-License-Identifier: Apache-2.0
"""`dtjob version` with a cluster, and without one."""

from pathlib import Path
from typing import Any

import pytest

from dtjob import __version__
from tests.unit.operator.client.api_server import ApiServer

DEPLOYMENTS = "/apis/apps/v1/deployments"


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        ([{"app.kubernetes.io/version": "0.3.0"}], "operator 0.3.0"),
        ([{"app.kubernetes.io/version": "0.3.0"}, {}], "operator 0.3.0, unknown"),
        ([], "operator: the cluster has none"),
    ],
)
def test_the_version_of_each_operator_is_shown(
    dtjob: Any, server: ApiServer, tmp_path: Path, labels: list[dict[str, str]], said: str
) -> None:
    server.answer(f"GET {DEPLOYMENTS}", {"items": [{"metadata": {"labels": one}} for one in labels]})
    shown = dtjob("version", "--kubeconfig", server.kubeconfig(tmp_path))
    assert shown == (0, f"dtjob {__version__}\n{said}\n", "")


def test_a_user_who_may_not_look_at_operators_is_told_so(dtjob: Any, server: ApiServer, tmp_path: Path) -> None:
    server.answer(f"GET {DEPLOYMENTS}", {"message": "forbidden"}, code=403)
    shown = dtjob("version", "--kubeconfig", server.kubeconfig(tmp_path))
    assert shown == (0, f"dtjob {__version__}\noperator: you may not look at it\n", "")


def test_without_a_cluster_the_version_is_shown_all_the_same(
    dtjob: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    code, out, err = dtjob("version")
    assert (code, out) == (0, f"dtjob {__version__}\n")
    assert err.startswith("operator: ")
