# SPDX-License-Identifier: Apache-2.0
"""`--set PATH=VALUE`."""

from pathlib import Path
from typing import Any

import pytest

from dtjob.bad_input import BadInput
from dtjob.crd.rule import values_at
from dtjob.manifests.script_settings import with_settings

MANIFEST = {
    "metadata": {"name": "train"},
    "spec": {
        "program": {"entrypoint": "train.py", "args": ["a"]},
        "tensorBoard": {},
        "replicaSpecs": {"worker": {"template": {"spec": {"containers": [{"name": "tensorflow"}]}}}},
    },
}
POD = "spec.replicaSpecs.worker.template.spec"


@pytest.mark.parametrize(
    ("setting", "at", "value"),
    [
        ("spec.failurePolicy.maxRestarts=3", "spec.failurePolicy.maxRestarts", 3),
        ("spec.suspend=true", "spec.suspend", True),
        ("spec.image=1", "spec.image", "1"),
        ("spec.program.args[0]=--rate=0.1", "spec.program.args", ["--rate=0.1"]),
        ("spec.program.args[1]=2", "spec.program.args", ["a", "2"]),
        ("spec.program.args=[b, c]", "spec.program.args", ["b", "c"]),
        ("spec.tensorBoard=null", "spec.tensorBoard", None),
        ("metadata.labels.example\\.org/team=red", "metadata.labels", {"example.org/team": "red"}),
        (f"{POD}.nodeSelector.pool=1", f"{POD}.nodeSelector", {"pool": "1"}),
        (f"{POD}.runtimeClassName=1", f"{POD}.runtimeClassName", "1"),
        (f"{POD}.hostIPC=true", f"{POD}.hostIPC", True),
        (f"{POD}.priority=5", f"{POD}.priority", 5),
        (f"{POD}.tolerations=[{{key: a}}]", f"{POD}.tolerations", [{"key": "a"}]),
        (f"{POD}.containers[name=tensorflow].image=a:1", f"{POD}.containers", [{"name": "tensorflow", "image": "a:1"}]),
        (f"{POD}.volumes[name=x].emptyDir.sizeLimit=1Gi", f"{POD}.volumes[].emptyDir.sizeLimit", "1Gi"),
        ("spec.replicaSpecs.worker.resources.limits.cpu=2", "spec.replicaSpecs.worker.resources.limits.cpu", 2),
        ("spec.program.env[name=A].value=1", "spec.program.env", [{"name": "A", "value": "1"}]),
    ],
)
def test_a_field_is_set_with_the_type_of_the_schema(setting: str, at: str, value: Any) -> None:
    found = [one for _, one in values_at(with_settings(MANIFEST, [setting]), at)]
    assert found == ([] if value is None else [value])


def test_settings_build_on_each_other_and_leave_the_first_manifest_alone() -> None:
    made = with_settings(MANIFEST, ["spec.tensorBoard=null", "spec.program.args[1]=b", "spec.program.args[2]=c"])
    assert made["spec"]["program"]["args"] == ["a", "b", "c"]
    assert "tensorBoard" not in made["spec"]
    assert MANIFEST["spec"]["program"] == {"entrypoint": "train.py", "args": ["a"]}


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("spec.suspend", "--set: 'spec.suspend' is not PATH=VALUE; write for example spec.failurePolicy.maxRestarts=3"),
        (
            "failurePolicy.maxRestarts=3",
            "--set: failurePolicy.maxRestarts: a path begins with spec or metadata; did you mean "
            "spec.failurePolicy.maxRestarts?",
        ),
        ("spec..a=1", "--set: 'spec..a' is no path"),
        ("[0]=1", "--set: [0]: a path begins with spec or metadata"),
        ("spec.program.args[3]=b", "--set: spec.program.args[3]: spec.program.args has 1 entries; the next is [1]"),
        ("spec.program.args.x=b", "--set: spec.program.args.x: spec.program.args has no fields"),
        ("spec.program[0]=b", "--set: spec.program[0]: spec.program is no list"),
        ("spec.tensorBoard={", "--set: spec.tensorBoard: '{' is not YAML"),
        ("metadata.name=a", "--set: metadata.name: give --name"),
        ("spec.program.source.configMap.name=a", "--set: spec.program.source.configMap.name: dtjob submit sends"),
    ],
)
def test_a_setting_that_cannot_be_is_named_with_its_path(setting: str, said: str) -> None:
    with pytest.raises(BadInput) as refused:
        with_settings(MANIFEST, [setting])
    assert str(refused.value).startswith(said)


@pytest.mark.parametrize("command", ["submit", "run"])
@pytest.mark.parametrize(
    ("setting", "said"),
    [
        (
            "spec.failurePolicy.maxRestart=3",
            "spec.failurePolicy.maxRestart: is an unknown field; did you mean maxRestarts?",
        ),
        ("spec.backoffLimit=3", "spec.backoffLimit: is an unknown field; write failurePolicy.maxRestarts"),
        ("spec.failurePolicy.maxRestarts=x", "spec.failurePolicy.maxRestarts: must be a whole number, not 'x'"),
        ("spec.suspend=yes", "spec.suspend: must be true or false, not 'yes'"),
    ],
)
def test_a_setting_that_the_schema_refuses_is_answered_as_in_a_file(
    dtjob: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, setting: str, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.py").touch()
    assert dtjob(command, "train.py", "--set", setting, "--dry-run") == (2, "", f"dtjob: --set: {said}\n")
