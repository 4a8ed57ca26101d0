# SPDX-License-Identifier: Apache-2.0
"""A job whose name the API server chooses, `metadata.generateName`: its file is read as if it had such a name."""

from dtjob.api.job import Metadata
from dtjob.crd.answers.field_errors import Problem
from dtjob.crd.answers.problems import problems
from dtjob.crd.rule import Value

_ENDING = "xxxxx"
"""An API server appends five characters (k8s.io/apiserver's storage/names)."""


def with_a_name(manifest: Value) -> Value:
    """This manifest with a name as long as the API server's, where it is left to that; else the manifest itself."""
    metadata = manifest.get("metadata") if isinstance(manifest, dict) else None
    if not isinstance(metadata, dict) or metadata.get("name"):
        return manifest
    begin = metadata.get("generateName")
    if not begin or not isinstance(begin, str):
        return manifest
    return {**manifest, "metadata": {**metadata, "name": begin + _ENDING}}


def of_the_begin(problem: Problem) -> Problem:
    """What is wrong with such a name, said of the field that the file has."""
    return Problem("metadata.generateName", problem.message) if problem.field == "metadata.name" else problem


def named(manifest: Value) -> tuple[Value, list[Problem]]:
    """`with_a_name` of this manifest, and what is wrong with it, said of the fields that the file has."""
    whole = with_a_name(manifest)
    found = problems(whole)
    return whole, found if whole is manifest else [of_the_begin(problem) for problem in found]


def hint(metadata: Metadata) -> str:
    """Which command takes a job that was given its name here; nothing of another."""
    begin = (metadata.model_extra or {}).get("generateName")
    if not begin or metadata.name != begin + _ENDING:
        return ""
    return "kubectl create takes it, as kubectl apply wants metadata.name"
