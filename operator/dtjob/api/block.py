# SPDX-License-Identifier: Apache-2.0
"""What every block of the manifest is: a pydantic model with the manifest's names; and what blocks share.

The description of a field stands below it in the source.
"""

import ast
import inspect
import textwrap
from collections.abc import Iterable, Mapping
from copy import deepcopy
from itertools import pairwise
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler
from pydantic.alias_generators import to_camel
from pydantic_core import CoreSchema


class Described(BaseModel):
    """A model whose schema has the text below a field as its description.

    pydantic's `use_attribute_docstrings` reads the source of each model when it is imported. This takes a fifth of the
    time of a command, and only the definition has descriptions. With `defer_build`, validators are made when they are
    needed, and a model that is only part of others has none of its own.
    """

    model_config = ConfigDict(defer_build=True)

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Add the descriptions to the schema of pydantic."""
        found = handler(core_schema)
        properties = handler.resolve_ref_schema(found).get("properties", {})
        for name, text in _texts(cls).items():
            if name in cls.model_fields:
                properties[cls.model_fields[name].alias or name].setdefault("description", text)
        return found


def _texts(model: type[BaseModel]) -> dict[str, str]:
    """The text below each field of the model and of those that it is made of."""
    found: dict[str, str] = {}
    for one in reversed(model.__mro__):
        if issubclass(one, Described) and one is not Described:
            (made,) = ast.parse(textwrap.dedent(inspect.getsource(one))).body
            assert isinstance(made, ast.ClassDef)
            for field, text in pairwise(made.body):
                match field, text:
                    case (
                        ast.AnnAssign(target=ast.Name(id=name)),
                        ast.Expr(value=ast.Constant(value=str(value))),
                    ):
                        found[name] = inspect.cleandoc(value)
    return found


class Block(Described):
    """A block of the manifest: camelCase names, no field that is not known."""

    model_config = ConfigDict(extra="forbid", alias_generator=to_camel, populate_by_name=True)


class OpenBlock(Block):
    """A block of Kubernetes' own, of which only some fields are typed here and the others are kept as they are."""

    model_config = ConfigDict(extra="allow")


Text = Annotated[str, Field(min_length=1, max_length=4096)]

LONGEST_SECONDS = 2**31 - 1
"""The most seconds of a deadline: 68 years, as batch/v1 has it for ttlSecondsAfterFinished."""
Seconds = Annotated[int, Field(ge=1, le=LONGEST_SECONDS)]

UNSET_IN_CLUSTER = {"x-dtjob-default": "in Python only"}
"""Marks a default that the API server does not fill in, because it depends on another field."""


def list_map(*keys: str) -> dict[str, Any]:
    """For the schema of a list: an entry is known by these of its fields."""
    return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)}


def without(found: Mapping[str, Any], locations: Iterable[tuple[int | str, ...]]) -> dict[str, Any]:
    """A copy of the JSON without what is at these locations, which are names of fields and indexes in lists. Raises
    KeyError if there is nothing at one of them."""
    whole = deepcopy(dict(found))
    for *above, last in sorted(locations, reverse=True):  # of a list from its end, so that the others stay in place
        block: Any = whole
        for part in above:
            block = block[part]
        del block[last]
    return whole
