"""The CRD's file is what the models and rules make, and is what an API server takes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from dtjob.api.job import Spec
from dtjob.crd import definition

LARGEST = 256 * 1024
"""What `kubectl apply` can hold in its annotation of an object."""


def nodes(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield schema
    for part in schema.get("properties", {}).values():
        yield from nodes(part)
    for key in ("items", "additionalProperties"):
        if key in schema:
            yield from nodes(schema[key])


def spec() -> dict[str, Any]:
    found: dict[str, Any] = definition.schema()["properties"]["spec"]
    return found


def test_the_file_is_fresh() -> None:
    text = definition.text()
    assert definition.FILE.read_text() == text, "run `python -m dtjob.crd`"
    assert yaml.safe_load(text) == definition.crd()


def test_the_charts_copy_is_fresh_and_kept_at_uninstall() -> None:
    assert definition.CHART_FILE.read_text() == definition.files()[definition.CHART_FILE], "run `python -m dtjob.crd`"
    copy = yaml.safe_load(definition.CHART_FILE.read_text())
    assert copy["metadata"].pop("annotations") == {"helm.sh/resource-policy": "keep"}
    assert copy == definition.crd()


def test_check_notices_a_stale_file(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(definition, "FILE", tmp_path / "crd.yaml")
    monkeypatch.setattr(definition, "CHART_FILE", tmp_path / "chart.yaml")
    monkeypatch.setattr(definition, "text", lambda annotations=None: f"made with {annotations}")
    assert definition.main(["--check"]) == 1
    assert definition.main([]) == 0
    assert definition.main(["--check"]) == 0
    assert definition.main(["--nonsense"]) == 2


def test_plain_kubectl_apply_can_take_it() -> None:
    assert len(definition.FILE.read_text()) < LARGEST / 2


def test_the_schema_is_structural() -> None:
    for node in nodes(spec()):
        assert "type" in node or "x-kubernetes-int-or-string" in node
        assert not {"$ref", "anyOf", "nullable", "title"} & set(node)


def test_every_field_that_is_ours_is_described() -> None:
    schema = spec()
    schema["properties"]["checkpoint"]["properties"]["volume"]["properties"] = {}  # these are Kubernetes' own
    for node in nodes(schema):
        for name, part in node.get("properties", {}).items():
            assert part.get("description"), name


def test_defaults_are_those_of_the_models() -> None:
    defaults = {name: part["default"] for name, part in spec()["properties"].items() if "default" in part}
    model = Spec.model_validate({"strategy": "Default", "image": "a", "replicas": {}})
    whole = model.model_dump(
        mode="json", by_alias=True, include={"failure_policy", "run_policy", "scheduling", "network"}
    )
    del whole["network"]["statusPort"], whole["scheduling"]["priorityClassName"]
    assert defaults == whole


def test_presence_that_means_something_is_not_defaulted() -> None:
    properties = spec()["properties"]
    for field in ("keep", "async"):
        assert "default" not in properties["checkpoint"]["properties"][field]
    assert "default" not in properties["network"]["properties"]["statusPort"]


def test_names_and_columns() -> None:
    names = definition.crd()["spec"]["names"]
    assert names["shortNames"] == ["dtjob", "dtjobs"]
    columns = definition.crd()["spec"]["versions"][0]["additionalPrinterColumns"]
    assert [c["name"].upper() for c in columns if "priority" not in c] == [
        *("STRATEGY", "PHASE", "READY", "STEP", "RESTARTS", "AGE")
    ]
    assert [c["name"].upper() for c in columns if "priority" in c] == ["PROGRESS", "ETA", "CHECKPOINT", "REASON"]
