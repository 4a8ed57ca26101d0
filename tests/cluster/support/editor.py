# SPDX-License-Identifier: Apache-2.0
"""A user with the rights of a namespace's editor, as the chart gives them."""

import contextlib
from pathlib import Path

import yaml

from tools.cluster.control_plane import ControlPlane
from tools.cluster.rest import Api, ApiError

ROLES = Path(__file__).parents[3] / "helm" / "dtjob" / "templates" / "userroles.yaml"


def editor(cluster: ControlPlane, api: Api, namespace: str, directory: Path) -> Path:
    """The kubeconfig of one whose context has this namespace."""
    _let_edit(api)
    cluster.kubectl("create", "serviceaccount", "editor", "-n", namespace)
    cluster.kubectl(
        *("create", "rolebinding", "editor", "-n", namespace),
        *("--clusterrole=edit", f"--serviceaccount={namespace}:editor"),
    )
    token = cluster.kubectl("create", "token", "editor", "-n", namespace).stdout.strip()
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": token}
    config["contexts"][0]["context"]["namespace"] = namespace
    file = directory / "editor.kubeconfig"
    file.write_text(yaml.safe_dump(config))
    return file


def _let_edit(api: Api) -> None:
    """Add the rules of the chart's role to edit, and wait for the controller that does it."""
    text = ROLES.read_text().split("---")[0]
    lines = [line for line in text.splitlines() if "{{" not in line]
    role = yaml.safe_load("\n".join([*lines, ""]).replace("  name: \n", ""))
    role["metadata"]["name"] = "dtjob-edit"
    with contextlib.suppress(ApiError):
        api.create("clusterroles", None, role)
    api.wait_for(
        "clusterroles", None, "edit", lambda found: "distributedtrainingjobs" in str(found and found.get("rules"))
    )
