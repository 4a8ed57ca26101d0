# SPDX-License-Identifier: Apache-2.0
"""CPU time in which an API server stores a job, and a status of it: with the definition's rules, and without them.

The same definition is served under several groups of one API server, which take turns: `with` rules, `without`, and
with `--definition FILE` another one as `other`. An API server evaluates rules in CEL at each of these
writes, the operator's own of each status included.
"""

import argparse
import json
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import yaml

from benchmarks.operators.jobs import Shape, dtjob
from benchmarks.operators.sides import usage_of
from benchmarks.peers.bare_loop import Call, Calls
from dtjob.api.job import KIND, PLURAL, VERSION
from dtjob.crd.definition import crd
from dtjob.crd.schema import VALIDATIONS
from tools import binaries
from tools.cluster.control_plane import ControlPlane
from tools.cluster.rest import Api

ROOT = Path(__file__).resolve().parents[1]
NAMESPACE = "default"
AT_ONCE = 10
JOBS: dict[str, dict[str, Any]] = {
    "small": dtjob("small", Shape(workers=3)),
    "digits": next(
        one for one in yaml.safe_load_all((ROOT / "examples/digits.yaml").read_text()) if one["kind"] == KIND
    ),
}
"""One with an image alone, and one with a program and checkpoints."""


def served_as(group: str, definition: dict[str, Any]) -> dict[str, Any]:
    """The definition, under this group."""
    made = deepcopy(definition)
    made["metadata"] = {"name": f"{PLURAL}.{group}"}
    made["spec"]["group"] = group
    return made


def without_rules(schema: Any) -> Any:
    """The schema without any rule in it."""
    if isinstance(schema, Mapping):
        return {name: without_rules(part) for name, part in schema.items() if name != VALIDATIONS}
    return [without_rules(part) for part in schema] if isinstance(schema, list) else schema


class Sides:
    """The definitions, each under a group of its own on one API server."""

    def __init__(self, cluster: ControlPlane, other: Path | None) -> None:
        definitions = {"with": crd(), "without": without_rules(crd())}
        if other:
            definitions["other"] = yaml.safe_load(other.read_text())
        self.names = tuple(definitions)
        self._cluster = cluster
        for side, definition in definitions.items():
            cluster.kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(served_as(_group(side), definition)))
            Api(cluster.kubeconfig).wait_established(f"{PLURAL}.{_group(side)}")

    def milliseconds(self, calls: list[Call]) -> float:
        """What one of these calls costs the API server's process."""
        made = Calls(self._cluster.kubeconfig, calls, self._cluster.directory / "calls", AT_ONCE)
        pid = self._cluster.program("kube-apiserver").process.pid
        before = usage_of(pid).cpu_seconds
        made.go()
        made.wait()
        return 1e3 * (usage_of(pid).cpu_seconds - before) / len(calls)


def _group(side: str) -> str:
    return f"{side}.dtjob.dev"


def _path(side: str, *names: str) -> str:
    return "/".join((f"apis/{_group(side)}/{VERSION}/namespaces/{NAMESPACE}/{PLURAL}", *names))


def creates(side: str, job: dict[str, Any], names: list[str]) -> list[Call]:
    """The calls that apply so many of this job."""
    named = ({**job, "metadata": {"name": name}} for name in names)
    return [Call("POST", _path(side), {**one, "apiVersion": f"{_group(side)}/{VERSION}"}) for one in named]


def writes(side: str, names: list[str]) -> Iterator[Call]:
    """The calls that write a status of each."""
    for name in names:
        yield Call("PATCH", _path(side, name, "status"), {"status": {"phase": "Running", "ready": "4/4"}})


def measure(sides: Sides, jobs: int, rounds: int) -> dict[str, Any]:
    """Milliseconds of a create and of a status write, by job and side: medians of the rounds."""
    found: dict[str, dict[str, dict[str, list[float]]]] = {
        what: {"create": defaultdict(list), "status": defaultdict(list)} for what in JOBS
    }
    for number in range(-1, rounds):  # the first one warms up
        for what, job in JOBS.items():
            for side in sides.names:
                names = [f"{what}-{number + 1}-{one}" for one in range(jobs)]
                created = sides.milliseconds(creates(side, job, names))
                written = sides.milliseconds(list(writes(side, names)))
                if number >= 0:
                    found[what]["create"][side].append(created)
                    found[what]["status"][side].append(written)
    return {
        what: {
            call: {side: round(statistics.median(took), 2) for side, took in by_side.items()}
            for call, by_side in calls.items()
        }
        for what, calls in found.items()
    }


def main() -> None:
    """Print the measurement as one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=300, help="jobs of each kind in a round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--definition", type=Path, help="crds/distributedtrainingjobs.yaml of another commit")
    options = parser.parse_args()
    with ControlPlane(binaries.find()) as cluster:
        found = measure(Sides(cluster, options.definition), options.jobs, options.rounds)
    json.dump({"millisecondsOfTheApiServer": found}, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
