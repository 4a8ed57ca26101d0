# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.program.whole_files: the log says once where saved files go with the pod; reports of saved models."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dtjob_trainer.contract.strategy import TRAITS

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


def test_the_warning_names_no_directory_of_an_object_store(said: Any, tmp_path: Path) -> None:
    found = said(directory="gs://bucket/run")
    save(tmp_path / "a.keras")
    assert found == [f"{tmp_path}/a.keras goes with the pod; write it to a volume"]


@pytest.mark.parametrize("where", [{"chief": False}, {"parent": 1}], ids=["another task", "a run on this machine"])
def test_other_tasks_and_local_runs_have_no_warning(said: Any, tmp_path: Path, where: dict[str, Any]) -> None:
    found = said(**where)
    save(tmp_path / "a.keras")
    assert found == []


def test_files_on_a_volume_have_no_warning(said: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whole_files.places, "is_on_volume", lambda path: True)
    found = said()
    save(tmp_path / "a.keras")
    assert found == []


def test_the_chief_reports_the_model_that_it_has_saved(
    said: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not the hidden file that dt.save renames."""
    reported: list[str] = []
    said(report=lambda model: reported.append(model))
    monkeypatch.chdir(tmp_path)
    save(Path("a.keras"))
    save(Path(".saving-b.keras"))
    assert reported == [str(tmp_path / "a.keras")]


def test_other_tasks_report_no_model(said: Any, tmp_path: Path) -> None:
    reported: list[str] = []
    said(chief=False, report=lambda model: reported.append(model))
    save(tmp_path / "a.keras")
    assert reported == []


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
