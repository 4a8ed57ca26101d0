# SPDX-License-Identifier: Apache-2.0
"""Descriptions of fields, which stand below them in the source."""

from __future__ import annotations

import ast
import inspect
import textwrap
from itertools import pairwise
from typing import Any

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler
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
