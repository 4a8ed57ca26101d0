# SPDX-License-Identifier: Apache-2.0
"""What Kubernetes takes in a pod, read from `pod_fields.json`."""

from dtjob.api.spec.volume_sources import MAY_BE_READ_ONLY, VOLUME_SOURCES
from dtjob.crd.answers.pod_schema import schema_of


def test_a_field_has_its_type() -> None:
    spec = schema_of("PodSpec")["properties"]
    container = spec["containers"]["items"]["properties"]
    assert spec["hostNetwork"] == {"nullable": True, "type": "boolean"}
    assert spec["nodeSelector"]["additionalProperties"] == {"nullable": True, "type": "string"}
    assert spec["overhead"]["additionalProperties"] == {"nullable": True, "format": "quantity"}
    assert container["command"]["items"]["type"] == "string"
    assert container["livenessProbe"]["properties"]["tcpSocket"]["properties"]["port"]["x-kubernetes-int-or-string"]
    assert container["volumeMounts"]["items"]["properties"]["readOnly"]["type"] == "boolean"


def test_a_volume_is_a_name_and_one_source() -> None:
    sources = schema_of("Volume")["properties"]
    assert set(VOLUME_SOURCES) == sources.keys() - {"name", "gitRepo"}
    writable = {name for name, source in sources.items() if "readOnly" in source.get("properties", {})}
    assert writable == set(MAY_BE_READ_ONLY)


def test_a_variable_may_come_from_elsewhere() -> None:
    assert schema_of("[EnvVar]")["items"]["properties"].keys() == {"name", "value", "valueFrom"}
