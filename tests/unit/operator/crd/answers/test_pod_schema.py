# SPDX-License-Identifier: Apache-2.0
"""What Kubernetes takes in a pod, read from `pod_fields.json`."""

from dtjob.api.spec.volume_sources import MAY_BE_READ_ONLY, VOLUME_SOURCES
from dtjob.crd.answers.pod_schema import environment_schema, pod_spec_schema, volume_source_schema


def test_a_field_has_its_type() -> None:
    spec = pod_spec_schema()["properties"]
    container = spec["containers"]["items"]["properties"]
    assert spec["hostNetwork"] == {"nullable": True, "type": "boolean"}
    assert spec["nodeSelector"]["additionalProperties"] == {"nullable": True, "type": "string"}
    assert spec["overhead"]["additionalProperties"]["anyOf"] == [{"type": "string"}, {"type": "number"}]
    assert container["command"]["items"]["type"] == "string"
    assert container["livenessProbe"]["properties"]["tcpSocket"]["properties"]["port"]["x-kubernetes-int-or-string"]
    assert container["volumeMounts"]["items"]["properties"]["readOnly"]["type"] == "boolean"


def test_a_volume_is_one_source_without_its_name() -> None:
    sources = volume_source_schema()["properties"]
    assert set(VOLUME_SOURCES) == sources.keys() - {"gitRepo"}
    assert {name for name, source in sources.items() if "readOnly" in source["properties"]} == set(MAY_BE_READ_ONLY)


def test_a_variable_may_come_from_elsewhere() -> None:
    assert environment_schema()["items"]["properties"].keys() == {"name", "value", "valueFrom"}
