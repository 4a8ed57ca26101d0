# SPDX-License-Identifier: Apache-2.0
"""Where checkpoints are, and defaults that the API server does not fill in."""

import pytest

from dtjob.api.block import UNSET_IN_CLUSTER
from dtjob.api.spec.checkpoint import Checkpoint, CheckpointStorage
from tests.unit.operator.builders import CLAIM_TEMPLATE


def test_a_default_that_the_api_server_does_not_fill_in_is_named_in_its_description() -> None:
    fields = [one for one in CheckpointStorage.model_fields.values() if one.json_schema_extra == UNSET_IN_CLUSTER]
    assert len(fields) == 3
    said = CheckpointStorage.model_json_schema()["properties"]
    for field in fields:
        text = " ".join(said[field.alias]["description"].split())
        assert f"Defaults to {field.default}." in text or f"{field.default} (the default)" in text


@pytest.mark.parametrize(
    ("storage", "directory"),
    [
        ({"volume": {"emptyDir": {}}}, "/checkpoints"),
        ({"volume": {"emptyDir": {}}, "mountPath": "/data"}, "/data"),
        ({"volumeClaimTemplate": CLAIM_TEMPLATE, "mountPath": "/data"}, "/data"),
        ({"uri": "gs://bucket/digits"}, "gs://bucket/digits"),
    ],
)
def test_the_directory_is_the_uri_or_the_path_of_the_mounted_volume(storage: dict[str, object], directory: str) -> None:
    assert Checkpoint.model_validate({"storage": storage}).directory == directory
