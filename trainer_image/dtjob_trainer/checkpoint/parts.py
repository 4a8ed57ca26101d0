# SPDX-License-Identifier: Apache-2.0
"""The files of one checkpoint. Parameter servers write what they hold, or it passes through the chief in pieces."""

import uuid
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import tensorflow as tf

from dtjob_trainer.checkpoint.directory import SEEN
from dtjob_trainer.models import values
from dtjob_trainer.models.values import Rows, form_of, is_large
from dtjob_trainer.process.peer_loss import is_peer_loss
from dtjob_trainer.strategies.parameter_servers import side_by_side

gfile = tf.io.gfile
HERE = "CPU:0"
"""The device of this task."""


def write(directory: str, name: str, tensors: Mapping[str, Any], *, final: str = "", by_servers: bool = False) -> None:
    """Write `tensors` to files `name`.data-… of a directory, and last `name`.index.

    A value is a tensor, or the `Rows` of a variable, which may be many. If these are more than PIECE_BYTES, there are
    several files, of at most so many bytes.

    - final: write to files of this prefix instead, and only pieces into the directory. For an object store, where the
      index is there once it is whole.
    - by_servers: have each parameter server write its own rows. Otherwise they pass through this process's memory, one
      file after the other.
    """
    whole = [
        entry for each, tensor in tensors.items() if not isinstance(tensor, list) for entry in _all_of(each, tensor)
    ]
    rows = [(each, part) for each, parts in tensors.items() if isinstance(parts, list) for part in parts]
    if sum(map(_bytes_of, rows)) <= values.PIECE_BYTES:
        save(final or f"{directory}/{name}", [*whole, *map(_entry, rows)])
        return
    prefixes = [f"{directory}/parts/0"]
    save(prefixes[0], whole)
    places: dict[str, list[tuple[str, Rows]]] = {}
    for each, part in rows:
        places.setdefault(part.tensor.device if by_servers else HERE, []).append((each, part))
    side_by_side(
        partial(_save_pieces, f"{directory}/parts/{number}", of_place, device, prefixes)
        for number, (device, of_place) in enumerate(places.items(), 1)
    )
    merged = final or f"{directory}/merged"  # elsewhere an index is there before it is whole: it is named last
    tf.raw_ops.MergeV2Checkpoints(checkpoint_prefixes=prefixes, destination_prefix=merged, delete_old_dirs=True)
    if final:
        return
    for file in sorted(gfile.glob(f"{merged}.data-*")):
        gfile.rename(file, f"{directory}/{name}{file[len(merged) :]}", overwrite=True)
    gfile.rename(f"{merged}.index", f"{directory}/{name}.index", overwrite=True)


def _all_of(name: str, tensor: Any) -> Iterator[tuple[str, str, Any]]:
    """The entries of a tensor in this process's memory: its pieces, if it is large."""
    if is_large(form_of(tensor.shape, tensor.dtype)):
        pieces = Rows(tuple(tensor.shape), 0, tensor.shape[0], tensor).pieces(tensor.dtype)
        yield from map(_entry, ((name, piece) for piece in pieces))
    else:
        yield name, "", tensor


def _save_pieces(prefix: str, rows: Sequence[tuple[str, Rows]], device: str, prefixes: list[str]) -> None:
    """Write rows of variables to files, one after the other; adds their prefixes to `prefixes`."""
    pieces = ((name, piece) for name, part in rows for piece in part.pieces(part.tensor.dtype))
    for number, group in enumerate(values.in_groups(pieces, _bytes_of)):
        save(f"{prefix}-{number}", list(map(_entry, group)), device)
        prefixes.append(f"{prefix}-{number}")


def _bytes_of(named: tuple[str, Rows]) -> int:
    _, rows = named
    return rows.bytes(rows.tensor.dtype)


def _entry(named: tuple[str, Rows]) -> tuple[str, str, Any]:
    name, rows = named
    return name, rows.slice, rows.tensor


def save(prefix: str, entries: Sequence[tuple[str, str, Any]], device: str = HERE) -> None:
    """Write tensors, each with its name and its place in the whole. `device`: of the task that writes."""
    names, slices, tensors = zip(*entries, strict=True)
    with tf.device(device):
        tf.raw_ops.SaveV2(
            prefix=prefix,
            tensor_names=list(names),
            shape_and_slices=list(slices),
            tensors=[tf.convert_to_tensor(tensor) for tensor in tensors],
        )


def is_shared(directory: str, servers: Sequence[str]) -> bool:
    """Whether each device of `servers` reads a new file of the chief's in `directory`, and the chief its answer.

    Raises TensorFlow's error of a server that is lost meanwhile.
    """
    if not servers:
        return False
    word = uuid.uuid4().hex
    asked = f"{directory}/{SEEN}{word}"
    answers = [f"{asked}-{number}" for number in range(len(servers))]
    try:
        tf.io.write_file(asked, word)
        side_by_side(partial(_answer, *each, asked) for each in zip(servers, answers, strict=True))
        return all(tf.io.read_file(answer).numpy().decode() == word for answer in answers)
    except tf.errors.OpError as error:
        if is_peer_loss(error, members=2):
            raise
        return False
    finally:
        for file in (asked, *answers):
            if gfile.exists(file):
                gfile.remove(file)


def _answer(server: str, answer: str, asked: str) -> None:
    """Have a server write what it reads. It makes nothing where it reads nothing: the directory may be its own."""
    with tf.device(server):
        tf.io.write_file(answer, tf.io.read_file(asked))
