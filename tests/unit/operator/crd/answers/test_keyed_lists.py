# SPDX-License-Identifier: Apache-2.0
"""Entries with the same keys, and which lists have keys at all: those that have them in a pod of Kubernetes' own."""

from __future__ import annotations

from typing import Any

from dtjob.crd.answers.keyed_lists import repeated_entries
from dtjob.crd.schema import LIST_KEYS, Schema, spec_schema

POD = {
    "containers": ["name"],
    "initContainers": ["name"],
    "volumes": ["name"],
    "imagePullSecrets": ["name"],
    "hostAliases": ["ip"],
    "resourceClaims": ["name"],
    "schedulingGates": ["name"],
    "topologySpreadConstraints": ["topologyKey", "whenUnsatisfiable"],
}
CONTAINER = {
    "env": ["name"],
    "ports": ["containerPort", "protocol"],
    "volumeMounts": ["mountPath"],
    "volumeDevices": ["devicePath"],
}
"""The `x-kubernetes-list-map-keys` of Kubernetes' own PodSpec and Container (its OpenAPI)."""


def keys_of(schema: Schema) -> dict[str, Any]:
    return {name: part[LIST_KEYS] for name, part in schema["properties"].items() if LIST_KEYS in part}


def test_a_templates_lists_have_the_keys_that_a_pods_have() -> None:
    assert keys_of(spec_schema()["properties"]["program"]) == {"env": ["name"]}
    for role in spec_schema()["properties"]["replicaSpecs"]["properties"].values():
        pod = role["properties"]["template"]["properties"]["spec"]
        assert keys_of(pod) == POD
        for kind in ("containers", "initContainers"):
            assert keys_of(pod["properties"][kind]["items"]) == CONTAINER


def test_keys_are_in_every_entry_or_have_a_default() -> None:
    """Else an API server takes no such list."""

    def lists(schema: Schema) -> list[Schema]:
        parts = [*schema.get("properties", {}).values(), *([schema["items"]] if "items" in schema else [])]
        return [*([schema] if LIST_KEYS in schema else []), *(each for part in parts for each in lists(part))]

    found = lists(spec_schema())
    assert len(found) == 1 + 4 * (len(POD) + 2 * len(CONTAINER))
    for one in found:
        entry = one["items"]
        for key in one[LIST_KEYS]:
            assert key in entry["required"] or "default" in entry["properties"][key]


def test_only_an_entry_with_all_the_keys_of_another_repeats_it() -> None:
    entry = {"properties": {"port": {}, "protocol": {"default": "TCP"}}}
    schema = {"properties": {"ports": {"items": entry, LIST_KEYS: ["port", "protocol"]}, "args": {"items": {}}}}
    value = {"ports": [{"port": 1}, {"port": 2}, {"port": 1, "protocol": "UDP"}], "args": ["a", "a"]}
    assert list(repeated_entries(value, schema, "spec")) == []
    value["ports"].append({"port": 1, "protocol": "TCP"})
    (found,) = repeated_entries(value, schema, "spec")
    assert str(found) == "spec.ports[3]: has the port and protocol of an entry before it: change it, or remove it"
