# SPDX-License-Identifier: Apache-2.0
"""The schema that is read from a file is that of the models without descriptions."""

import json

from dtjob.crd.answers.manifest_schema import manifest_schema, text
from dtjob.crd.schema import spec_schema


def test_the_file_is_fresh() -> None:
    assert manifest_schema() == json.loads(text()), "run `make crd`"


def test_only_descriptions_are_left_out() -> None:
    spec = manifest_schema()["properties"]["spec"]
    assert spec["properties"].keys() == spec_schema()["properties"].keys()
    assert spec["required"] == spec_schema()["required"]
    assert '"description": "' not in json.dumps(manifest_schema())
