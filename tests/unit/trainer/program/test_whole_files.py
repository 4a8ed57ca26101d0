# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.program.whole_files: the log says once where saved files go with the pod."""

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

    for name in whole_files.METHODS:
        monkeypatch.setattr(keras.Model, name, getattr(keras.Model, name))
    monkeypatch.setattr(MultiDeviceSaver, "save", MultiDeviceSaver.save)
    monkeypatch.setattr(whole_files.places, "is_temporary", lambda path: False)
    monkeypatch.setattr(whole_files.places, "is_on_volume", lambda path: False)

    def patch(*, chief: bool = True, parent: int | None = None, directory: str = "/checkpoints") -> list[str]:
        found: list[str] = []
        task = SimpleNamespace(
            id="chief-0", traits=TRAITS["Mirrored"], parent=parent, checkpoint=SimpleNamespace(directory=directory)
        )
        whole_files.save_whole(SimpleNamespace(is_chief=chief, warn=found.append), task)
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
