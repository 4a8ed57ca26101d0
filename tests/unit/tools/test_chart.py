# SPDX-License-Identifier: Apache-2.0
"""The chart's values: each is described, and its README is made from them."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import yaml

from tools import chart

SCHEMA = json.loads((chart.CHART / "values.schema.json").read_text())
VALUES = yaml.safe_load((chart.CHART / "values.yaml").read_text())
PROBES = ("livenessProbe", "readinessProbe")


def undescribed(schema: dict[str, Any], values: Any, path: str = "") -> Iterator[str]:
    """Values that have no description, and those that the schema does not know."""
    for name, value in values.items():
        part = schema.get("properties", {}).get(name)
        if part is None or not part.get("description"):
            yield f"{path}{name}"
        elif isinstance(value, dict) and "properties" in part and "resources" not in name and "Probe" not in name:
            yield from undescribed(part, value, f"{path}{name}.")


def test_each_value_has_a_description() -> None:
    assert list(undescribed(SCHEMA, VALUES)) == []


def test_each_value_of_the_schema_has_a_default() -> None:
    def missing(schema: dict[str, Any], values: Any) -> Iterator[str]:
        for name, part in schema.get("properties", {}).items():
            if name not in values:
                yield name
            elif part.get("additionalProperties") is False and name not in ("resources", *PROBES):
                yield from missing(part, values[name])

    assert list(missing(SCHEMA, VALUES)) == ["global"]


def test_the_defaults_are_allowed() -> None:
    jsonschema.validate(VALUES, SCHEMA)


def test_the_readme_is_that_of_the_values() -> None:
    assert chart.README.read_text() == chart.readme(), "run `make chart`"


def test_a_description_is_short_sentences() -> None:
    for path, _, said in chart.described(SCHEMA, VALUES):
        assert said.endswith("."), path
        assert all(len(sentence.split()) <= 25 for sentence in said.split(". ")), path


def test_the_version_is_that_of_both_packages() -> None:
    root = Path(__file__).parents[3]
    made = yaml.safe_load((chart.CHART / "Chart.yaml").read_text())
    trainer = (root / "trainer_image" / "pyproject.toml").read_text()
    operator = (root / "operator" / "dtjob" / "__init__.py").read_text()
    assert made["version"] == made["appVersion"]
    assert f'version = "{made["version"]}"' in trainer
    assert f'__version__ = "{made["version"]}"' in operator
