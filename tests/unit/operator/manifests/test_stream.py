# SPDX-License-Identifier: Apache-2.0
"""Manifests from files, folders and standard input, each with where it was found."""

import io
import sys
from pathlib import Path

import pytest

from dtjob.bad_input import BadInput
from dtjob.manifests.stream import read_documents


def found(*paths: Path) -> list[tuple[str, object]]:
    return [(one.where, one.content) for one in read_documents(paths)]


def test_documents_of_a_stream_and_of_lists_are_counted(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("a: 1\n---\n---\nkind: List\nitems: [{b: 1}, {kind: PodList, items: [{c: 1}]}]\n")
    assert found(file) == [
        (f"{file}, document 1", {"a": 1}),
        (f"{file}, document 2", {"b": 1}),
        (f"{file}, document 3", {"c": 1}),
    ]


def test_a_folder_is_read_with_its_sub_folders(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    for name in ("b/x.yml", "a.json", "c.txt"):
        (tmp_path / name).write_text("{a: 1}")
    assert [where for where, _ in found(tmp_path)] == [str(tmp_path / "a.json"), str(tmp_path / "b" / "x.yml")]


def test_standard_input_has_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a: 1")))
    assert found(Path("-")) == [("standard input", {"a": 1})]


@pytest.mark.parametrize(
    ("text", "said"), [("a: [", "is not YAML: line 1"), ("[" * 5000, "nested too deeply"), ("!!int x", "is not YAML")]
)
def test_the_error_of_a_file_that_is_no_yaml_names_the_file(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(text)
    with pytest.raises(BadInput, match=said) as refusal:
        found(file)
    assert str(refusal.value).startswith(str(file))


def test_hidden_files_and_links_of_a_folder_are_left_out(tmp_path: Path) -> None:
    jobs, elsewhere = tmp_path / "jobs", tmp_path / "elsewhere"
    for file in (jobs / "a.yaml", jobs / ".dtjob" / "first" / "bad.yaml", jobs / ".tool.yaml", elsewhere / "c.yaml"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("{kind: A}")
    (jobs / "folder").symlink_to(elsewhere)
    (jobs / "d.yaml").symlink_to(elsewhere / "c.yaml")
    assert [one.where for one in read_documents([jobs])] == [str(jobs / "a.yaml")]


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no file that ends with"):
        found(tmp_path)
