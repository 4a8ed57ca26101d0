"""The files of one checkpoint. What is on parameter servers passes through the chief in pieces."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf

from dtjob_trainer.models import values
from dtjob_trainer.models.values import Rows, bytes_of, is_large, kind_of

gfile = tf.io.gfile


def write(directory: str, name: str, tensors: Mapping[str, Any]) -> None:
    """Write `tensors` to files `name`.data-… of a directory, and last `name`.index.

    A value is a tensor, or the `Rows` of a variable, which may be many. At most PIECE_BYTES of those are in this
    process's memory at once.
    """
    whole = [
        entry for each, tensor in tensors.items() if not isinstance(tensor, list) for entry in _all_of(each, tensor)
    ]
    rows = [(each, part) for each, parts in tensors.items() if isinstance(parts, list) for part in parts]
    if sum(map(_bytes_of, rows)) <= values.PIECE_BYTES:
        _save(f"{directory}/{name}", [*whole, *map(_entry, rows)])
        return
    prefixes = [f"{directory}/parts/0"]
    _save(prefixes[0], whole)
    pieces = ((each, piece) for each, part in rows for piece in part.pieces(part.tensor.dtype))
    for group in values.in_groups(pieces, _bytes_of):
        prefixes.append(f"{directory}/parts/{len(prefixes)}")
        _save(prefixes[-1], list(map(_entry, group)))
    merged = f"{directory}/merged"  # the index is not written at once: it gets its name when it is whole
    tf.raw_ops.MergeV2Checkpoints(checkpoint_prefixes=prefixes, destination_prefix=merged, delete_old_dirs=True)
    for file in sorted(gfile.glob(f"{merged}.data-*")):
        gfile.rename(file, f"{directory}/{name}{file[len(merged) :]}", overwrite=True)
    gfile.rename(f"{merged}.index", f"{directory}/{name}.index", overwrite=True)


def _all_of(name: str, tensor: Any) -> Iterator[tuple[str, str, Any]]:
    """The entries of a tensor in this process's memory: its pieces, if it is large."""
    if is_large(kind_of(tensor.shape, tensor.dtype)):
        pieces = Rows(tuple(tensor.shape), 0, tensor.shape[0], tensor).pieces(tensor.dtype)
        yield from map(_entry, ((name, piece) for piece in pieces))
    else:
        yield name, "", tensor


def _bytes_of(named: tuple[str, Rows]) -> int:
    _, rows = named
    return bytes_of(kind_of((rows.count, *rows.shape[1:]) if rows.shape else (), rows.tensor.dtype))


def _entry(named: tuple[str, Rows]) -> tuple[str, str, Any]:
    name, rows = named
    return name, rows.slice, rows.tensor


def _save(prefix: str, entries: Sequence[tuple[str, str, Any]]) -> None:
    """Write tensors, each with its name and its place in the whole."""
    names, slices, tensors = zip(*entries, strict=True)
    with tf.device("CPU:0"):
        tf.raw_ops.SaveV2(
            prefix=prefix,
            tensor_names=list(names),
            shape_and_slices=list(slices),
            tensors=[tf.convert_to_tensor(tensor) for tensor in tensors],
        )
