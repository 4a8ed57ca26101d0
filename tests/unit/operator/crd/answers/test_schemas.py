# SPDX-License-Identifier: Apache-2.0
"""The schema that is read from a file is that of the models; and what Kubernetes takes, read from `pod_fields.json`."""

import json

from dtjob.api.spec.volume_sources import MAY_BE_READ_ONLY, VOLUME_SOURCES
from dtjob.crd.answers.schemas import manifest_schema, manifest_text, schema_of
from dtjob.crd.schema import spec_schema


def test_the_file_is_fresh() -> None:
    assert manifest_schema() == json.loads(manifest_text()), "run `make crd`"


def test_only_descriptions_are_left_out() -> None:
    spec = manifest_schema()["properties"]["spec"]
    assert spec["properties"].keys() == spec_schema()["properties"].keys()
    assert spec["required"] == spec_schema()["required"]
    assert '"description": "' not in json.dumps(manifest_schema())


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
