# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.checkpoint.model_file: a model has its name only once it is on disk."""

from pathlib import Path

import pytest

from dtjob_trainer.checkpoint import model_file
from dtjob_trainer.process.runtime import Runtime


class Model:
    """One that is saved as a file, or as a directory where its path names no format."""

    def save(self, path: str) -> None:
        if path.endswith(".keras"):
            Path(path).write_text("a model")
        else:
            (Path(path) / "variables").mkdir(parents=True)
            for name in ("saved_model.pb", "variables/variables.index"):
                (Path(path) / name).write_text("a model")


@pytest.mark.parametrize(
    ("name", "files"), [("model.keras", {".saving-model.keras"}), ("model", {"saved_model.pb", "variables.index"})]
)
def test_a_model_is_on_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flushed: list[str], name: str, files: set[str]
) -> None:
    """As what marks the run done is: else a power cut might leave the mark and no model."""
    here = Runtime()
    monkeypatch.setattr(model_file.runtime, "current", lambda: here)
    model_file.save(Model(), f"{tmp_path}/{name}")
    assert set(flushed) == files
    assert [path.name for path in tmp_path.iterdir()] == [name]
