# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.program.whole_files: where saved files lie, what the log says of them, and reports of saved models."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dtjob_trainer.contract.strategy import TRAITS
from tests.power_loss.mounted import MountedDisk

keras = pytest.importorskip("keras")
whole_files = pytest.importorskip("dtjob_trainer.program.whole_files")


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Patches Keras and TensorFlow for a task like that, and returns what the log says of saved files."""
    from tensorflow.python.checkpoint.functional_saver import MultiDeviceSaver

    for name in ("save", "save_weights"):
        monkeypatch.setattr(keras.Model, name, getattr(keras.Model, name))
    monkeypatch.setattr(MultiDeviceSaver, "save", MultiDeviceSaver.save)
    monkeypatch.setattr(whole_files.places, "is_temporary", lambda path: False)
    monkeypatch.setattr(whole_files.places, "is_on_volume", lambda path: False)

    def patch(
        *,
        chief: bool = True,
        parent: int | None = None,
        directory: str = "/checkpoints",
        report: Any = lambda model: None,
    ) -> list[str]:
        found: list[str] = []
        task = SimpleNamespace(
            id="chief-0", traits=TRAITS["Mirrored"], parent=parent, checkpoint=SimpleNamespace(directory=directory)
        )
        here = SimpleNamespace(is_chief=chief, warn=found.append, progress=SimpleNamespace(report=report))
        whole_files.save_whole(here, task)
        return found

    return patch


def save(path: Path) -> None:
    keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)]).save(path)


def test_the_warning_names_the_volume_once_for_each_directory(said: Any, tmp_path: Path) -> None:
    import tensorflow as tf

    found = said()
    save(tmp_path / "a.keras")
    save(tmp_path / "b.keras")
    assert found == [f"{tmp_path}/a.keras goes with the pod; write it to a volume, such as /checkpoints"]
    tf.train.Checkpoint(count=tf.Variable(1)).save(tmp_path / "own" / "ckpt")
    assert len(found) == 2
    assert found[1].startswith(f"{tmp_path}/own/ckpt-1 goes with the pod")
    found = said(directory="gs://bucket/run")
    save(tmp_path / "a.keras")
    assert found == [f"{tmp_path}/a.keras goes with the pod; write it to a volume"]


@pytest.mark.parametrize(
    ("where", "on_volume"),
    [({"chief": False}, False), ({"parent": 1}, False), ({}, True)],
    ids=["another task", "a run on this machine", "a volume"],
)
def test_other_tasks_local_runs_and_volumes_have_no_warning(
    said: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: dict[str, Any], on_volume: bool
) -> None:
    monkeypatch.setattr(whole_files.places, "is_on_volume", lambda path: on_volume)
    found = said(**where)
    save(tmp_path / "a.keras")
    assert found == []


@pytest.mark.parametrize("chief", [True, False])
def test_the_chief_alone_reports_the_model_that_it_has_saved(
    said: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chief: bool
) -> None:
    """Not the hidden file that dt.save renames."""
    reported: list[str] = []
    said(chief=chief, report=lambda model: reported.append(model))
    monkeypatch.chdir(tmp_path)
    save(Path("a.keras"))
    save(Path(".saving-b.keras"))
    assert reported == [str(tmp_path / "a.keras")] * chief


def test_a_power_loss_leaves_one_model_or_the_other(said: Any, disk: MountedDisk) -> None:
    said()
    path, sizes = disk.where / "model.keras", {0}
    for units in (100, 200):
        keras.Sequential([keras.Input((100,)), keras.layers.Dense(units)]).save(path)
        sizes.add(path.stat().st_size)
    for seed in range(12):
        disk.lose(seed * disk.changes() // 11, seed)
        assert (path.stat().st_size if path.exists() else 0) in sizes, f"seed {seed}"
        if path.exists():
            keras.models.load_model(path)


@pytest.mark.parametrize(("method", "name"), [("save", "model.keras"), ("save_weights", "model.weights.h5")])
def test_an_error_over_a_missing_folder_names_the_path_of_the_program(
    said: Any, tmp_path: Path, method: str, name: str
) -> None:
    said()
    path = tmp_path / "no" / name
    with pytest.raises(OSError, match=name) as raised:
        getattr(keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)]), method)(path)
    assert f"'{path}'" in str(raised.value)
    assert ".chief-0-" not in str(raised.value)
    assert raised.value.__context__ is None


def write(text: str, export_dir: str) -> None:
    Path(export_dir).mkdir(exist_ok=True)
    Path(export_dir, "saved_model.pb").write_text(text)


def read(export_dir: str) -> str:
    return Path(export_dir, "saved_model.pb").read_text()


@pytest.fixture
def task() -> Any:
    return whole_files.OwnDirectories("worker-1")


def test_a_task_reads_what_it_has_written_and_leaves_the_chiefs_alone(task: Any, tmp_path: Path) -> None:
    path = tmp_path / "exported"
    write("chief", str(path))
    task.writing(write, "export_dir")("own", export_dir=path)
    assert task.reading(read, "export_dir")(path) == "own"
    assert read(str(path)) == "chief"
    assert {each.name for each in tmp_path.iterdir()} == {"exported", ".worker-1-exported"}


def test_a_task_reads_where_the_program_says_what_it_has_not_written(task: Any, tmp_path: Path) -> None:
    write("chief", str(tmp_path / "exported"))
    write("of an earlier run", str(tmp_path / ".worker-1-exported"))
    assert task.reading(read, "export_dir")(str(tmp_path / "exported")) == "chief"


@pytest.mark.parametrize("name", [".worker-1-exported", ".saving-exported"])
def test_a_directory_that_has_been_chosen_for_the_task_is_written_as_it_is_named(
    task: Any, tmp_path: Path, name: str
) -> None:
    task.writing(write, "export_dir")("own", str(tmp_path / name))
    assert [each.name for each in tmp_path.iterdir()] == [name]


def test_a_uri_is_left_as_it_is(task: Any) -> None:
    assert task.writing(lambda export_dir: export_dir, "export_dir")("gs://bucket/exported") == "gs://bucket/exported"


ENDS = """
import os, signal, sys, time
import tensorflow as tf
from dtjob_trainer.contract.task import Task
from dtjob_trainer.process.runtime import Runtime
from dtjob_trainer.program import whole_files
task = Task("j", "ns", "uid", "worker", 1)
here = Runtime(task)
here.shutdown.install()
whole_files.keep_apart(here, task)
tf.saved_model.save(tf.Module(), "exported")
assert os.listdir() == [".worker-1-exported"], os.listdir()
if sys.argv[1] == "SIGTERM":
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(60)
here.leave(starts_again=sys.argv[1] == "lost peer")
os._exit(143)
"""


@pytest.mark.parametrize("how", ["SIGTERM", "lost peer"])
def test_a_task_leaves_no_copy_however_its_process_ends(tmp_path: Path, how: str) -> None:
    command = [sys.executable, "-c", ENDS, how]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=280, check=False)
    assert (ended.returncode, list(tmp_path.iterdir())) == (143, []), ended.stderr
