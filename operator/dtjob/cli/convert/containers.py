# SPDX-License-Identifier: Apache-2.0
"""Containers of a TFJob's template: variables, amounts of resources, and ports."""

from typing import Any

from dtjob.api.spec.network import Network
from dtjob.cli.convert.fields import Fields, items, mapping
from dtjob.cli.convert.findings import Findings

PORT_NAME = "tfjob-port"
TF_CONFIG = "TF_CONFIG"
_OUR_PREFIX = "DTJOB_"
_OUR_PORT_NAMES = ("tensorflow", "status")
_AMOUNTS = ("limits", "requests")


def with_own_environment(container: Fields, path: str, said: Findings) -> Fields:
    """The container with each variable once. In a pod the last one of a name counts."""
    if "env" not in container:
        return container
    last: dict[str, Fields] = {}
    for at, value in enumerate(items(container["env"], f"{path}.env")):
        variable = mapping(value, f"{path}.env[{at}]")
        name = str(variable.get("name", ""))
        if name.startswith(_OUR_PREFIX):
            said.warn(f"{path}.env[{at}]", f"variables that begin with {_OUR_PREFIX} belong to dtjob; it is left out")
            continue
        if name in last:
            said.note(f"{path}.env[{at}]", f"{name} is there twice; the last one counts in a pod, and it is kept")
            del last[name]
        last[name] = variable
    return {**container, "env": list(last.values())}


def sets_tf_config(container: Fields) -> bool:
    """Whether the container has a TF_CONFIG of its own."""
    return any(variable.get("name") == TF_CONFIG for variable in container.get("env") or [])


def without_tf_config(container: Fields, path: str, why: str, said: Findings) -> Fields:
    """The container without a TF_CONFIG of its own, with a warning that says why."""
    if not sets_tf_config(container):
        return container
    kept = [variable for variable in container["env"] if variable.get("name") != TF_CONFIG]
    said.warn(f"{path}.env", f"{TF_CONFIG}: {why}")
    return {**container, "env": kept}


def with_text_quantities(container: Fields, path: str) -> Fields:
    """The container whose amounts of resources are whole numbers or texts, as dtjob takes them."""
    if "resources" not in container:
        return container
    resources = dict(mapping(container["resources"], f"{path}.resources"))
    for kind in _AMOUNTS:
        if kind in resources:
            amounts = mapping(resources[kind], f"{path}.resources.{kind}")
            resources[kind] = {name: str(one) if isinstance(one, float) else one for name, one in amounts.items()}
    return {**container, "resources": resources}


def without_our_ports(container: Fields, port: int, path: str, said: Findings) -> Fields:
    """The training container without the port that dtjob adds, network.port."""
    if "ports" not in container:
        return container
    kept = []
    for at, value in enumerate(items(container["ports"], f"{path}.ports")):
        one = dict(mapping(value, f"{path}.ports[{at}]"))
        where = f"{path}.ports[{at}]"
        same = one.get("containerPort") == port and one.get("protocol", "TCP") == "TCP"
        if same or one.get("name") == PORT_NAME:
            if {"hostPort", "hostIP"} & one.keys():
                said.warn(where, "dtjob adds the port of TensorFlow without hostPort and hostIP; they are left out")
            if not same:
                said.warn(where, f"all roles of a dtjob have one port for TensorFlow, which is {port}")
            continue
        if one.get("name") in _OUR_PORT_NAMES:
            said.warn(f"{where}.name", f"dtjob has a port named {one['name']}; the name is left out")
            del one["name"]
        kept.append(one)
    return {
        **{name: value for name, value in container.items() if name != "ports"},
        **({"ports": kept} if kept else {}),
    }


def port_of(container: Fields) -> int:
    """The port of TensorFlow in this container, the default if it names none."""
    for one in container.get("ports") or []:
        number = one.get("containerPort") if isinstance(one, dict) and one.get("name") == PORT_NAME else None
        if isinstance(number, int):
            return number
    return Network().port


def command(container: Fields) -> list[Any]:
    """Command and arguments of the container together."""
    return [*(container.get("command") or []), *(container.get("args") or [])]
