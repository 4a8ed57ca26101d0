# SPDX-License-Identifier: Apache-2.0
"""Whether parameter servers have the chief's checkpoint directory, so that they can read and write there themselves."""

import uuid
from collections.abc import Sequence
from functools import partial

import tensorflow as tf

from dtjob_trainer.checkpoint.directory import SEEN
from dtjob_trainer.process.peer_loss import is_peer_loss
from dtjob_trainer.strategies.servers import side_by_side

gfile = tf.io.gfile


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
        _write(asked, word)
        side_by_side(partial(_answer, *each, asked) for each in zip(servers, answers, strict=True))
        return all(_read(answer) == word for answer in answers)
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


def _write(path: str, text: str) -> None:
    with gfile.GFile(path, "w") as file:
        file.write(text)


def _read(path: str) -> str:
    with gfile.GFile(path) as file:
        return str(file.read())
