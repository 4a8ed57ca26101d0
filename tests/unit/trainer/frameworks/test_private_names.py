# SPDX-License-Identifier: Apache-2.0
"""Private names of TensorFlow, Keras and Python stand in dtjob_trainer/frameworks/ alone."""

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[4] / "trainer_image" / "dtjob_trainer"
HOME = "frameworks"
PRIVATE_MODULES = ("keras.src", "keras_tuner.src", "tensorflow.python", "tf_keras.src")
PUBLIC = {"_class", "_exit", "_output_shapes"}
"""Names that begin like private ones: `os._exit`, and attributes of nodes in a GraphDef."""
OURS = ("_dtjob_", "_temp")
"""How attributes begin that dtjob sets itself, and the end of the name of a file."""
EXCEPTIONS: dict[str, set[str]] = {}
"""By file, what is still to be moved. Names go from here and are never added."""


def trees() -> dict[str, ast.Module]:
    """Every file of the package, by its path below the package."""
    return {str(file.relative_to(PACKAGE)): ast.parse(file.read_text()) for file in sorted(PACKAGE.rglob("*.py"))}


def defined(tree: ast.AST) -> Iterator[str]:
    """The names that a file of ours defines: they are ours."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.alias):
            yield (node.asname or node.name).split(".")[-1]
        elif isinstance(node, ast.Attribute | ast.Name) and isinstance(node.ctx, ast.Store):
            if isinstance(node, ast.Name):
                yield node.id
            elif isinstance(node.value, ast.Name) and node.value.id == "self":
                yield node.attr


def is_private(name: object) -> bool:
    single = isinstance(name, str) and name.startswith("_") and not name.startswith("__") and name.isidentifier()
    return single and name not in PUBLIC and not str(name).startswith(OURS)


def private(tree: ast.AST, ours: set[str]) -> set[str]:
    """The private names of others that a file uses: modules, attributes, and their names as text."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            is_source = node.attr == "src" and ast.unparse(node.value) in ("keras", "tf_keras")
            if is_source or node.attr == "__internal__" or (is_private(node.attr) and node.attr not in ours):
                found.add(node.attr)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith(PRIVATE_MODULES):
            found.add(str(node.module))
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.startswith(PRIVATE_MODULES)}
        elif isinstance(node, ast.Constant):
            text = str(node.value)
            if (is_private(text) and text not in ours) or text.startswith(PRIVATE_MODULES):
                found.add(text)
    return found


def test_private_names_of_other_packages_stand_in_one_folder() -> None:
    """If this fails for a name that is gone, take the name out of EXCEPTIONS."""
    files = trees()
    ours = {name for path, tree in files.items() if not path.startswith(HOME) for name in defined(tree)}
    found = {path: private(tree, ours) for path, tree in files.items() if not path.startswith(HOME)}
    assert {path: names for path, names in found.items() if names} == EXCEPTIONS
