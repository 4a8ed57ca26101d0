# SPDX-License-Identifier: Apache-2.0
"""The blocks of a schema as sections, each once."""

from typing import Any

from dtjob.api.spec.replica_specs import Role
from tools.reference.sections import sections


def block(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "description": "A block.", "properties": properties}


def entries(of: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "description": "Entries.", "items": of}


NAME = {"type": "string", "description": "A name."}


def titles(schema: dict[str, Any]) -> list[str]:
    return [section.title for section in sections(schema, "spec")]


def test_blocks_follow_the_block_that_they_are_in() -> None:
    schema = block(a=block(b=entries(block(c=NAME))), d=NAME, e={**block(), "additionalProperties": block(f=NAME)})
    assert titles(schema) == ["spec", "spec.a", "spec.a.b[]", "spec.e.*"]
    assert sections(schema, "spec")[0].links == {"a": "speca", "e": "spece"}


def test_a_block_with_the_same_fields_is_there_once() -> None:
    schema = block(a=block(x=NAME), b={**block(x=NAME), "description": "Another one.", "x-kubernetes-validations": []})
    whole, section = sections(schema, "spec")
    assert (section.title, section.also_at) == ("spec.a", ["spec.b"])
    assert section.paths == [("a",), ("b",)]
    assert whole.links == {"a": "speca", "b": "speca"}


def test_blocks_whose_descriptions_differ_have_their_own_sections() -> None:
    schema = block(a=block(x=NAME), b=block(x={**NAME, "description": "Another name."}))
    assert titles(schema) == ["spec", "spec.a", "spec.b"]


def test_a_block_that_every_role_has_is_the_last_section_with_one_title() -> None:
    template = block(containers=entries(block(x=NAME)), others=entries(block(x=NAME)))
    roles = {role.value: block(template=template, **{f"n{role}": NAME}) for role in Role}
    schema = block(roles=block(**roles), last=block(y=NAME))
    assert titles(schema) == [
        "spec",
        "spec.roles",
        *(f"spec.roles.{role}" for role in Role),
        "spec.last",
        "spec.roles.*.template",
        "spec.roles.*.template.containers[]",
    ]
    section = sections(schema, "spec")[-1]
    assert section.also_at == ["spec.roles.*.template.others[]"]
    assert len(section.paths) == 2 * len(Role)


def test_a_block_that_some_blocks_share_has_its_section_at_the_first_of_them() -> None:
    schema = block(a=block(x=block(n=NAME), a=NAME), b=block(x=block(n=NAME), b=NAME))
    assert titles(schema) == ["spec", "spec.a", "spec.a.x", "spec.b"]
    assert sections(schema, "spec")[2].also_at == ["spec.b.x"]


def test_fields_that_we_do_not_describe_have_no_section() -> None:
    assert titles(block(a={"type": "object", "properties": {"x": NAME}})) == ["spec"]
