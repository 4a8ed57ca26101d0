# SPDX-License-Identifier: Apache-2.0
"""pydantic's errors in words that say what to write instead."""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from dtjob.api.job import Job
from dtjob.crd.answers.field_errors import dotted, in_words, open_block_errors, repeated_entries, without_empty_fields
from dtjob.crd.schema import LIST_KEYS, Schema, spec_schema
from tests.refusals import job
from tests.refusals.manifests import checkpoint

QUANTITY = "must be a quantity, such as 4, 500m or 16Gi (in quotes)"


def said(manifest: dict[str, Any]) -> list[str]:
    with pytest.raises(ValidationError) as refusal:
        Job.model_validate_json(json.dumps(manifest), strict=True)
    return [str(problem) for problem in in_words(refusal.value)]


@pytest.mark.parametrize(
    ("manifest", "wanted"),
    [
        (job(image=3), "spec.image: must be text, not 3: put it into quotes"),
        (job(image=["a"]), "spec.image: must be text, not a list"),
        (job(image=""), "spec.image: must not be empty; give it a value"),
        (job(image="a" * 1025), "spec.image: must have at most 1024 characters, and has 1025"),
        (job(program={}), "spec.program.entrypoint: is required; add it"),
        (
            job(program={"entrypoint": "a.py", "args": ["a"] * 257}),
            "spec.program.args: must have at most 256 entries, and has 257",
        ),
        (job(program={"entrypoint": "a.py", "args": "a"}), "spec.program.args: must be a list, not 'a'"),
        (job(checkpoint=3), "spec.checkpoint: must be a mapping (names with values), not 3"),
        (checkpoint(writeMode="maybe"), "spec.checkpoint.writeMode: must be one of Async or Sync, not 'maybe'"),
        (checkpoint(maxToKeep=0), "spec.checkpoint.maxToKeep: must be at least 1, not 0"),
        (checkpoint(maxToKeep=1001), "spec.checkpoint.maxToKeep: must be at most 1000, not 1001"),
        (checkpoint(maxToKeep=1.5), "spec.checkpoint.maxToKeep: must be a whole number, not 1.5"),
        (job(cleanPodPolicy="Some"), "spec.cleanPodPolicy: must be one of Running, All or None, not 'Some'"),
        (job(elasticpolicy={}), "spec.elasticpolicy: is an unknown field; did you mean elasticPolicy?"),
        (
            job(elasticPolicy={"zzz": 1}),
            "spec.elasticPolicy.zzz: is an unknown field; remove it; there are growPeriodSeconds, maxReplicas, "
            "minReplicas, scheduleTimeoutSeconds",
        ),
        (
            job(replicaSpecs={"chief": {"resources": {"limits": {"cpu": True}}}}),
            f"spec.replicaSpecs.chief.resources.limits.cpu: {QUANTITY}, not true",
        ),
        (
            job(replicaSpecs={"chief": {"resources": {"limits": {"cpu": 1.5}}}}),
            f"spec.replicaSpecs.chief.resources.limits.cpu: {QUANTITY}, not 1.5",
        ),
        (
            job(replicaSpecs={"chief": {"resources": {"limits": {"value": {}}}}}),
            f"spec.replicaSpecs.chief.resources.limits.value: {QUANTITY}, not a mapping",
        ),
    ],
)
def test_each_kind_of_error_is_one_sentence_with_its_remedy(manifest: dict[str, Any], wanted: str) -> None:
    (found,) = said(manifest)
    assert found.startswith(wanted)


def test_places_are_written_as_kubernetes_writes_them() -> None:
    assert dotted(("spec", "program", "args", 1)) == "spec.program.args[1]"
    assert dotted(()) == ""


def test_a_block_that_pydantic_does_not_check_is_checked_against_the_schema() -> None:
    volume = spec_schema()["properties"]["checkpoint"]["properties"]["storage"]["properties"]["volume"]
    found = [str(problem) for problem in open_block_errors({"emptyDirs": {}, "nfs": 3}, volume, "volume")]
    assert found == [
        "volume.emptyDirs: is an unknown field; did you mean emptyDir?",
        "volume.nfs: must be a mapping (names with values), not 3",
    ]
    assert list(open_block_errors({"csi": {"driver": "a", "any": {"thing": 1}}}, volume, "volume")) == []


def test_a_null_is_as_if_left_out_but_in_the_open_parts_of_a_pod() -> None:
    pod = {"template": {"spec": {"dnsConfig": None, "hostname": None}}}
    spec = {
        "image": None,
        "program": {"entrypoint": "a.py", "args": [None]},
        "replicaSpecs": {"chief": pod, "worker": None},
    }
    assert without_empty_fields(spec, spec_schema()) == {
        "program": {"entrypoint": "a.py", "args": [None]},
        "replicaSpecs": {"chief": {"template": {"spec": {"dnsConfig": None}}}},
    }


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
    assert len(found) == 1 + 5 * (len(POD) + 2 * len(CONTAINER))
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
