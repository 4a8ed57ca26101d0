# SPDX-License-Identifier: Apache-2.0
"""docs/migrate/tfjob.md: the tests that it names are there, and its dtjobs do what it says of them."""

import ast
import re
from collections.abc import Iterator
from typing import Any

import pytest

from dtjob.api.job import Job
from dtjob.cli.convert.tfjob import convert
from dtjob.crd.answers.problems import problems, to_job
from dtjob.crd.schema import spec_schema
from dtjob.objects import labels, topology
from dtjob.objects.pod import environment
from dtjob.objects.pod.pod import pod
from tests.unit.operator import builders
from tests.unit.operator.simulation.operator import World
from tests.unit.page_commands import ROOT
from tests.unit.tfjob_page import PAGE, dtjobs, rows, tfjob

DTJOBS = dtjobs()
NAMED = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE.read_text())


def as_stored(name: str) -> Job:
    """The page's dtjob as an API server keeps it."""
    whole = to_job(DTJOBS[name][0])
    whole.metadata.uid, whole.metadata.resource_version, whole.metadata.generation = builders.JOB_UID, "1", 1
    return whole


@pytest.mark.parametrize(("file", "test"), NAMED)
def test_each_test_that_the_page_names_exists(file: str, test: str) -> None:
    tree = ast.parse((ROOT / file).read_text())
    assert test in {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_each_fault_and_each_wish_names_a_test_or_is_said_not_to_be_there() -> None:
    for heading in ("Ten faults", "What its users asked for most"):
        assert rows(heading)
        assert [row for row in rows(heading) if ("`tests/" in row[-1]) is row[-2].startswith("not there")] == []


@pytest.mark.parametrize("name", DTJOBS)
def test_a_dtjob_is_taken_and_makes_its_tasks(name: str) -> None:
    manifest, tasks = DTJOBS[name]
    assert manifest["metadata"]["name"] == name
    assert problems(manifest) == []
    with World(as_stored(name)) as world:
        world.run(1)
        assert set(world.pods) == {f"{name}-{task}-0" for task in tasks}
        for one in world.pods:
            world.cluster.change("Pod", one, lambda pod: pod.update(status=builders.running()))
        world.run(1)
        assert world.job.status["phase"] == "Running"


@pytest.mark.parametrize(
    ("name", "ends", "phase"),
    [
        ("mnist", ["worker-0"], "Running"),
        ("mnist", ["worker-0", "worker-1", "worker-2"], "Succeeded"),
        ("mnist-ps", ["worker-1"], "Running"),
        ("mnist-ps", ["worker-0"], "Succeeded"),
        ("mnist-trained", ["chief-0"], "Succeeded"),
    ],
)
def test_a_dtjob_ends_when_those_have_ended_who_decide(name: str, ends: list[str], phase: str) -> None:
    with World(as_stored(name)) as world:
        world.run(1)
        for one in world.pods:
            world.cluster.change("Pod", one, lambda pod: pod.update(status=builders.running()))
        world.run(1)
        for task in ends:
            ended = builders.ended(0, world.now())
            world.cluster.change("Pod", f"{name}-{task}-0", lambda pod, ended=ended: pod.update(status=ended))
        world.run(5)
        assert world.job.status["phase"] == phase


def test_the_first_dtjob_is_the_converted_tfjob_with_the_security_contexts_of_dtjob() -> None:
    made = convert(tfjob()).manifest
    template = made["spec"]["replicaSpecs"]["worker"]["template"]["spec"]
    del template["securityContext"], template["containers"][0]["securityContext"]
    assert made == DTJOBS["mnist"][0]


def leaves(value: Any, path: str = "") -> Iterator[str]:
    """Paths of a spec's fields; roles as `*`."""
    if not isinstance(value, dict):
        yield path
        return
    for name, item in value.items():
        where = f"{path}.{'*' if path == 'tfReplicaSpecs' else name}".removeprefix(".")
        yield from [where] if where.endswith("template") else leaves(item, where)


def fields_of(cell: str) -> Iterator[str]:
    """What the cell has in code spans before any colon, with the block of the first of them for those beside it."""
    block = ""
    for span in re.findall(r"`([\w.*]+)(?::[^`]*)?`", cell):
        block = block or span.rpartition(".")[0]
        yield span if "." in span or not block else f"{block}.{span}"


def test_the_table_has_every_field_of_the_tfjob() -> None:
    said = {field for row in rows("Field by field") for field in fields_of(row[0])}
    assert set(leaves(tfjob()["spec"])) <= said


def test_every_field_that_the_table_names_is_in_the_schema() -> None:
    for theirs, ours, *_ in rows("Field by field"):
        first = re.match(r"`([\w.*]+)", ours)
        if first is None:
            assert ours.startswith(("none", "the same", "left out", "refused")), theirs
            continue
        part = spec_schema()
        for name in first[1].split("."):
            part = part["properties"]["worker" if name == "*" else name]


def test_names_labels_and_hosts_are_as_it_says() -> None:
    whole = as_stored("mnist")
    task = topology.Task(topology.Role.WORKER, 0)
    made = pod(whole, task, 0)
    said = "\n".join(row[1] for row in rows("Names and labels"))
    named = re.findall(r"`((?:training\.dtjob\.dev|app\.kubernetes\.io)/[\w-]+)", said)
    assert set(named) <= set(labels.of(made))
    assert f"`{made['metadata']['name']}`" in said
    assert f"`{topology.hostname(whole, task)}.{whole.metadata.name}`" in said
    host = topology.cluster_spec(whole)["worker"][0]
    assert f"`{host}`" in "\n".join(row[1] for row in rows("TF_CONFIG"))
    container = made["spec"]["containers"][0]
    assert environment.TF_CONFIG in [one["name"] for one in container["env"]]
    assert [port["containerPort"] for port in container["ports"]] == [2222]
    trained = as_stored("mnist-trained")
    assert "evaluator" not in topology.cluster_spec(trained)
