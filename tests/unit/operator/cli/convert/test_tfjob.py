# SPDX-License-Identifier: Apache-2.0
"""Whole TFJobs: each result is valid, means what the TFJob meant, and each field has a home or a line."""

import contextlib
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from dtjob.api.job import Job
from dtjob.cli.convert.reading import CannotConvert
from dtjob.cli.convert.tfjob import convert
from dtjob.crd.answers.problems import problems, to_job
from dtjob.manifests.job_file import with_a_name
from dtjob.objects import labels, topology
from dtjob.objects.pod.pod import pod
from tests.unit.operator.cli.convert.tfjobs import FILES, converted, lines, of_file, replica, tfjob
from tests.unit.tfjob_page import tfjob as of_the_page

TFJOBS = [(file, one) for file in FILES for one in of_file(file)]


def job_of(manifest: dict[str, Any]) -> Job:
    return to_job(with_a_name(manifest))


@pytest.mark.parametrize(("file", "manifest"), TFJOBS, ids=lambda value: value.name if isinstance(value, Path) else "")
@pytest.mark.parametrize("program", [False, True])
def test_each_result_is_valid(file: Path, manifest: dict[str, Any], program: bool) -> None:
    assert problems(with_a_name(convert(manifest, program=program).manifest)) == []


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for name, item in value.items():
            yield from leaves(item, f"{path}.{name}".lstrip("."))
    elif isinstance(value, list) and value:
        for at, item in enumerate(value):
            yield from leaves(item, f"{path}[{at}]")
    elif value not in (None, "", {}, []):
        yield path, value


@pytest.mark.parametrize(("file", "manifest"), TFJOBS, ids=lambda value: value.name if isinstance(value, Path) else "")
def test_every_value_is_in_the_result_or_in_a_line(file: Path, manifest: dict[str, Any]) -> None:
    result = convert(manifest)
    there = [str(value) for _, value in leaves(result.manifest)]
    said = [one.path for one in result.findings]
    # restartPolicy becomes rules, and the kind is another one.
    own = ("kind", "apiVersion", "restartPolicy")
    for path, value in leaves(manifest):
        named = any(path == one or path.startswith((f"{one}.", f"{one}[")) for one in said)
        text = str(value).replace("training.kubeflow.org/replica-index", labels.INDEX)
        home = text in there or path.rpartition(".")[2] in own or named
        ports = "ports" in path and value in ("tfjob-port", 2222, 2224)
        once = path.endswith((".name", ".value")) and "env" in path  # TF_CONFIG, whose line names the list
        assert home or ports or once or path.endswith(("Chief.replicas", "Worker.replicas")), path


def test_the_tfjob_of_the_page_loses_nothing() -> None:
    result = convert(of_the_page())
    assert lines(result) == {}
    assert result.manifest["spec"]["strategy"] == "MultiWorkerMirrored"


def test_chiefless_parameter_servers_stay_so() -> None:
    result = converted({"PS": replica(), "Worker": replica(replicas=2)})
    assert lines(result) == {}
    assert result.manifest["spec"]["strategy"] == "ParameterServer"
    assert [task.id for task in topology.tasks(job_of(result.manifest))] == ["worker-0", "worker-1", "ps-0"]


def test_a_single_worker_becomes_a_chief_and_several_gpus_become_mirrored() -> None:
    alone = converted({"Worker": replica()}).manifest["spec"]
    assert (alone["strategy"], list(alone["replicaSpecs"])) == ("Default", ["chief"])
    gpus = converted({"Worker": replica(resources={"limits": {"nvidia.com/gpu": "4"}})}).manifest["spec"]
    assert gpus["strategy"] == "Mirrored"


def test_pods_run_as_the_image_says() -> None:
    """Also with an empty securityContext, which dtjob by itself takes as user 1000."""
    for context in ({}, None, {"fsGroup": 5}):
        roles = {"Chief": replica(securityContext={})}
        roles["Chief"]["template"]["spec"]["securityContext"] = context
        job = job_of(converted(roles).manifest)
        made = pod(job, topology.chief_task(job), 0)["spec"]
        assert made["securityContext"] == (context or {})
        assert made["containers"][0]["securityContext"] == {}


def test_own_tf_config_is_dropped_where_the_operator_of_tfjob_overwrites_it() -> None:
    own = [{"name": "TF_CONFIG", "value": "{}"}]
    result = converted({"Worker": replica(replicas=2, env=own)})
    assert any("TF_CONFIG" in line for line in lines(result).values())
    assert "env" not in str(result.manifest["spec"]["replicaSpecs"])
    alone = converted({"Worker": replica(env=own)})
    assert lines(alone) == {}
    assert alone.manifest["spec"]["replicaSpecs"]["chief"]["template"]["spec"]["containers"][0]["env"] == own


def test_a_field_that_v1_prunes_is_dropped_and_said() -> None:
    result = converted({"Chief": replica()}, {"backoffLimit": 1}, cleanPodPolicy="All")
    assert "prunes" in lines(result)["spec.cleanPodPolicy"]
    assert result.manifest["spec"]["cleanPodPolicy"] == "None"


def test_dynamic_workers_are_elastic_and_the_difference_is_said() -> None:
    result = converted({"Worker": replica(replicas=2)}, enableDynamicWorker=True)
    assert result.manifest["spec"]["elasticPolicy"] == {}
    assert "restarts the group" in lines(result)["spec.enableDynamicWorker"]
    assert "elasticPolicy" not in converted({"Worker": replica(replicas=2)}, enableDynamicWorker=False).manifest["spec"]


def test_a_converted_job_keeps_another_port_and_is_open_for_further_ports() -> None:
    port = [{"name": "tfjob-port", "containerPort": 3333}, {"name": "board", "containerPort": 6006}]
    result = converted({"Worker": replica(replicas=2, ports=port)})
    assert result.manifest["spec"]["network"] == {"port": 3333, "isolation": "None"}
    assert "network" not in converted({"Worker": replica(ports=port[:0])}).manifest["spec"]


def test_images_that_differ_stay_in_the_templates() -> None:
    spec = converted({"Chief": replica(), "Worker": replica(image="registry.example/b:1")}).manifest["spec"]
    assert "image" not in spec
    images = [block["template"]["spec"]["containers"][0]["image"] for block in spec["replicaSpecs"].values()]
    assert images == ["registry.example/a:1", "registry.example/b:1"]


def test_a_program_takes_the_place_of_the_command() -> None:
    worker = replica(replicas=2, command=["python", "train.py"], args=["--epochs=3"])
    result = convert(tfjob({"Worker": worker}), program=True)
    assert result.manifest["spec"]["program"] == {"entrypoint": "train.py", "args": ["--epochs=3"]}
    assert "trainer image" in lines(result)["--program"]


@pytest.mark.parametrize(
    ("roles", "why"),
    [
        ({"Worker": replica(command=["/run.sh"])}, "does not run"),
        ({"PS": replica(command=["python", "a.py"]), "Worker": replica(command=["python", "a.py"])}, "needs a chief"),
        ({"Chief": replica(command=["python", "a.py"]), "Worker": replica(command=["python", "b.py"])}, "different"),
    ],
)
def test_a_command_that_cannot_be_a_program_stays(roles: dict[str, Any], why: str) -> None:
    result = convert(tfjob(roles), program=True)
    assert "program" not in result.manifest["spec"]
    assert why in lines(result)["--program"]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"apiVersion": "kubeflow.org/v1alpha2"}, "apiVersion"),
        ({"spec": None}, "no task trains"),
        ({"spec": {"tfReplicaSpecs": {"Scheduler": replica()}}}, "no role of a TFJob"),
        ({"spec": {"tfReplicaSpecs": {"Worker": replica(), "worker": replica()}}}, "twice"),
        ({"spec": {"tfReplicaSpecs": {"Chief": replica(), "Master": replica()}}}, "twice"),
        ({"spec": {"tfReplicaSpecs": {"PS": replica()}}}, "no task trains"),
        ({"spec": {"tfReplicaSpecs": {"PS": replica(), "Chief": replica()}}}, "needs workers"),
        ({"spec": {"tfReplicaSpecs": {"Worker": {}}}}, "tensorflow"),
        ({"spec": {"tfReplicaSpecs": {"Worker": replica(policy="Sometimes")}}}, "restartPolicy"),
        ({"metadata": {"name": "x" * 70}}, "too long"),
        ({"metadata": {}}, "metadata.name"),
    ],
)
def test_the_error_of_a_tfjob_that_cannot_be_converted_names_the_field(change: dict[str, Any], why: str) -> None:
    with pytest.raises(CannotConvert, match=why):
        convert({**tfjob({"Worker": replica(replicas=2)}), **change})


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    for key, item in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from paths(item, (*path, key))


ODD: tuple[Any, ...] = (3, "x", True, None, [], ["x"], -1, {}, 0.5, {"a": 1}, "", [{"name": "x"}], [None])


@pytest.mark.parametrize(("file", "manifest"), TFJOBS, ids=lambda value: value.name if isinstance(value, Path) else "")
def test_odd_values_are_refused_in_words_or_converted(file: Path, manifest: dict[str, Any]) -> None:
    for at, path in enumerate(one for one in paths(manifest) if one[0] in ("spec", "metadata") and len(one) > 1):
        changed = deepcopy(manifest)
        block = changed
        for part in path[:-1]:
            block = block[part]
        block[path[-1]] = ODD[at % len(ODD)]
        with contextlib.suppress(CannotConvert):
            convert(changed)


def test_a_policy_that_tfjob_does_not_know_is_what_its_operator_makes_of_it() -> None:
    """Its definition takes any text. Its operator deletes all pods, and has only one word for success."""
    result = converted({"Worker": replica(replicas=2)}, {"cleanPodPolicy": "EndOfJob"}, successPolicy="Default")
    said = lines(result)
    assert "'EndOfJob' is none of None, Running, All; TFJob reads it as All" in said["spec.runPolicy.cleanPodPolicy"]
    assert said["spec.successPolicy"].startswith("'Default' is none of AllWorkers; TFJob reads it as left out")
    assert result.manifest["spec"]["cleanPodPolicy"] == "All"
    assert "successPolicy" not in result.manifest["spec"]
    with pytest.raises(CannotConvert, match=r"spec.successPolicy: must be text, not 3"):
        converted({"Chief": replica()}, successPolicy=3)


@pytest.mark.parametrize("program", [False, True])
def test_hosts_in_arguments_are_said_also_in_those_of_a_program(program: bool) -> None:
    trained = replica(replicas=2, command=["python", "train.py"], args=["--chief=mnist-worker-0:2222"])
    result = convert(tfjob({"Worker": trained}), program=program)
    assert ("program" in result.manifest["spec"]) is program
    (said,) = (message for message in lines(result).values() if "names the host mnist-worker-0" in message)
    assert "mnist-worker-0.mnist" in said


def test_a_port_without_a_number_is_that_of_tensorflow() -> None:
    assert "network" not in converted({"Worker": replica(ports=[{"name": "tfjob-port"}])}).manifest["spec"]
