# SPDX-License-Identifier: Apache-2.0
"""The expressions of docs/jobs/workflows.md, as Argo and Katib read them, on the statuses of simulated jobs.

Both read the expressions out of the object's JSON by GJSON paths; what of that language the page uses is evaluated
here. Argo's are label selectors whose keys are such paths. tests/cluster/test_other_tools.py evaluates them with the
libraries of both.
"""

import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from dtjob.api.job import KIND
from dtjob.objects import labels, topology
from tests.unit.operator import builders
from tests.unit.operator.simulation.operator import World
from tests.unit.workflows_page import PAGE, expressions

QUERY = re.compile(r'#\((\w+)=="(\w*)"\)#')
MISSING = object()


def gjson(value: Any, path: str) -> Any:
    """What a path of names, of `#(NAME=="TEXT")#` and of pipes leads to; MISSING where it leads nowhere."""
    for step in re.findall(r"#\([^)]*\)#|[^.|]+", path):
        if query := QUERY.fullmatch(step):
            if not isinstance(value, list):
                return MISSING
            name, text = query.groups()
            value = [one for one in value if isinstance(one, dict) and one.get(name) == text]
        elif isinstance(value, dict) and step in value:
            value = value[step]
        else:
            return MISSING
    return value


def holds_for_argo(job: dict[str, Any], selector: str) -> bool:
    """Argo: each requirement of the selector is met; of a path that leads nowhere, none but `!=` is."""
    for requirement in selector.split(","):
        key, operator, text = re.fullmatch(r"\s*([\w./-]+)\s*(==|=|!=)\s*([\w.-]+)\s*", requirement).groups()  # type: ignore[union-attr]
        found = gjson(job, key)
        if (found is not MISSING and str(found) == text) is (operator == "!="):
            return False
    return True


def holds_for_katib(job: dict[str, Any], path: str) -> bool:
    """Katib: the path leads to an object, or to an array that is not empty."""
    found = gjson(job, path)
    return isinstance(found, dict) or (isinstance(found, list) and bool(found))


ARGO, KATIB = expressions("Argo Workflows"), expressions("Katib")


def end_of_chief(world: World, code: int) -> None:
    world.cluster.change("Pod", "digits-chief-0-0", lambda one: one.update(status=builders.ended(code, world.now())))
    world.run(2)


def stages(ending: str) -> Iterator[dict[str, Any]]:
    """A job, as it is stored, from its creation to its end; only the last one has ended."""
    policy = {"activeDeadlineSeconds": 5000} if ending == "deadline" else {}
    world = World(builders.job("Default", failurePolicy={"maxRestartsWithoutProgress": 0}, **policy, suspend=True))
    stored = world.cluster.objects[KIND, "digits"]
    try:
        yield stored
        world.run(1)
        yield stored
        world.cluster.change(KIND, "digits", lambda one: one["spec"].update(suspend=False))
        world.run(1)
        yield stored
        world.cluster.change("Pod", "digits-chief-0-0", lambda one: one.update(status=builders.running()))
        world.run(1)
        yield stored
        if ending == "deadline":
            world.run(6000)
        else:
            end_of_chief(world, 0 if ending == "succeeded" else 1)
            world.run(20)
        yield stored
    finally:
        world.close()


@pytest.mark.parametrize("ending", ["succeeded", "failed", "deadline"])
def test_argo_and_katib_see_each_end_and_nothing_before(ending: str) -> None:
    seen = []
    for job in stages(ending):
        argo = [holds_for_argo(job, ARGO[name]) for name in ("successCondition", "failureCondition")]
        katib = [holds_for_katib(job, KATIB[name]) for name in ("successCondition", "failureCondition")]
        assert argo == katib
        seen.append(tuple(argo))
    assert seen == [(False, False)] * 4 + [(ending == "succeeded", ending != "succeeded")]


def test_katib_finds_the_chiefs_pod_and_its_container() -> None:
    pod = builders.pod(builders.job(), "chief-0")
    assert KATIB["primaryPodLabels"].items() <= labels.of(pod).items()
    assert KATIB["primaryContainerName"] in [one["name"] for one in pod["spec"]["containers"]]


def test_katib_finds_worker_0_where_there_is_no_chief() -> None:
    (text,) = re.findall(r"If a job has no chief, its primary pod is\s+`(\{.*?\})`", PAGE.read_text())
    job = builders.job(chief=False, program=False)
    matched = [
        task.id
        for task in topology.tasks(job)
        if yaml.safe_load(text).items() <= labels.of(builders.pod(job, task.id)).items()
    ]
    assert matched == ["worker-0"]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ('a.#(t=="x")#|#(s=="True")#', [{"t": "x", "s": "True"}]),
        ('a.#(t=="x")#', [{"t": "x", "s": "True"}, {"t": "x", "s": "False"}]),
        ('a.#(t=="z")#', []),
        ('b.#(t=="z")#', MISSING),
        ("c.d", 3),
        ("c.e", MISSING),
        ('c.#(t=="x")#', MISSING),
    ],
)
def test_paths_lead_where_gjson_says(path: str, expected: Any) -> None:
    value = {"a": [{"t": "x", "s": "True"}, {"t": "x", "s": "False"}, {"t": "y", "s": "True"}], "c": {"d": 3}}
    assert gjson(value, path) == expected
