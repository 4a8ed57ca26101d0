# SPDX-License-Identifier: Apache-2.0
"""Checkpoints that a kill tore, or a disk damaged: what is read afterwards is whole. By hand, without a cluster."""

import json
import shutil
import sys
import threading
from pathlib import Path

import numpy as np
import tensorflow as tf
import tf_keras

from dtjob_trainer.checkpoint import directory as checkpoint
from dtjob_trainer.checkpoint import done, model_file, object_store
from dtjob_trainer.checkpoint import writer as writing
from dtjob_trainer.checkpoint.stored import Stored
from dtjob_trainer.contract.settings import Checkpoint
from dtjob_trainer.contract.task import Task
from dtjob_trainer.models import values
from dtjob_trainer.process import runtime

directory = Path(sys.argv[1])
OLD, NEW = ({"v": tf.fill([1000], value)} for value in (1.0, 2.0))
OLD_ROWS, NEW_ROWS = ({"v": [values.Rows((1000,), 0, 1000, tf.fill([1000], value))]} for value in (1.0, 2.0))
INDEX, DATA = directory / "ckpt-5.index", directory / f"ckpt-5{checkpoint.DATA_SUFFIX}"


def read(step):
    """All of a checkpoint, as a restart reads it."""
    stored = Stored(str(directory), step)
    stored.verify()
    return {name: stored.array(name) for name in stored.forms}, stored.state


class Killed(BaseException):
    pass


def blob(name):
    return json.dumps({"name": name}).encode()


def fresh(tensors=OLD):
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    writing.write(str(directory), 5, tensors, blob("old"), 3)


CALLS = {name: getattr(checkpoint.gfile, name) for name in ("makedirs", "rmtree", "rename", "remove")}


def killed_before(number, tensors, step=5, where=str(directory)):
    """Write this step, killed before that call which changes the directory; False where it ends before."""
    left = number

    def counted(name):
        def call(*arguments, **options):
            nonlocal left
            if not left:
                raise Killed
            left -= 1
            return CALLS[name](*arguments, **options)

        return call

    for name in CALLS:
        setattr(checkpoint.gfile, name, counted(name))
    try:
        writing.write(where, step, tensors, blob("new"), 3)
    except Killed:
        return True
    finally:
        for name, own in CALLS.items():
            setattr(checkpoint.gfile, name, own)
    return False


values.PIECE_BYTES = 1000  # a save of rows is in five files
for old, new in ((OLD, NEW), (OLD_ROWS, NEW_ROWS), (OLD_ROWS, NEW), (OLD, NEW_ROWS)):
    number, found, killed = 0, set(), True
    while killed:
        fresh(old)
        killed = killed_before(number, new)
        checkpoint.clear_half_written(str(directory))
        assert checkpoint.steps_in(str(directory)) == [5], number
        arrays, state = read(5)
        assert np.all(arrays["v"] == {"old": 1.0, "new": 2.0}[state["name"]]), (number, state)
        assert not list(directory.glob("*_temp"))
        found.add(state["name"])
        number += 1
    assert number > 5
    assert found == {"old", "new"}


# in an object store, for which file:// stands
object_store.SCHEMES = ("file://",)
for new, step in ((NEW, 6), (NEW_ROWS, 6), (NEW, 5)):
    number, found, killed = 0, set(), True
    while killed:
        fresh()
        killed = killed_before(number, new, step, f"file://{directory}")
        checkpoint.clear_half_written(f"file://{directory}")
        there = checkpoint.steps_in(f"file://{directory}")
        for each in there:
            arrays, state = read(each)
            assert np.all(arrays["v"] == {"old": 1.0, "new": 2.0}[state["name"]]), (number, state)
        assert {path.name.partition(".")[0] for path in directory.iterdir()} - {"checkpoint"} == {
            f"ckpt-{each}" for each in there
        }, number
        found.add((*there, read(there[-1])[1]["name"]))
        number += 1
    assert found == {(5, "old"), (5, "new") if step == 5 else (5, 6, "new")}
object_store.SCHEMES = ()


def spoilt(path, change):
    content = bytearray(path.read_bytes())
    change(content)
    path.write_bytes(content)


def flip(content):
    content[len(content) // 3] ^= 1


damages = [
    lambda: spoilt(DATA, flip),
    lambda: spoilt(INDEX, flip),
    lambda: DATA.write_bytes(DATA.read_bytes()[:100]),
    lambda: INDEX.write_bytes(INDEX.read_bytes()[:50]),
    lambda: DATA.write_bytes(b""),
    lambda: INDEX.write_bytes(b""),
]
for damage in damages:
    fresh()
    damage()
    try:
        read(5)
    except checkpoint.UNREADABLE:
        checkpoint.set_aside(str(directory), 5)
    else:
        raise AssertionError("a damaged checkpoint was read")
    assert checkpoint.steps_in(str(directory)) == []
    checkpoint.clear_half_written(str(directory))
    assert sorted(path.name for path in directory.glob("damaged-*")) == [
        f"damaged-{DATA.name}",
        f"damaged-{INDEX.name}",
    ]
fresh()
for part in (DATA, INDEX):  # pruned while the evaluator reads
    part.unlink()
    try:
        read(5)
    except checkpoint.GONE:
        continue
    raise AssertionError("a checkpoint that is gone was read")

# training goes on while the state is written: it is that of its step
goes_on, write, history = threading.Event(), writing.write, [1.0]
task = Task("test", "default", "uid", "chief", 0, checkpoint=Checkpoint(str(directory)))
told = {}
writer = writing.Writer(task, task.checkpoint, lambda **keys: told.update(keys), print)


def late(*arguments):
    goes_on.wait()
    write(*arguments)


writing.write = late
writer.write(6, NEW, {"history": history})
assert told == {"writing": 6}
history.append(2.0)
goes_on.set()
writer.wait()
assert read(6)[1] == {"history": [1.0]}
assert told["writing"] is None
assert told["checkpoint"]["step"] == 6

# a model as a directory: saved twice, and what a killed process left of a third
runtime.enter(runtime.Runtime(task))
model = tf_keras.Sequential([tf_keras.layers.Dense(1, input_shape=(2,))])
for _ in range(2):
    model_file.save(model, "model")
assert (directory / "model" / "saved_model.pb").exists()
(directory / "mine").mkdir()
(directory / "mine" / "notes.txt").write_text("mine")
refused = ""
try:
    model_file.save(model, "mine")
except ValueError as error:
    refused = str(error)
assert "notes.txt" in refused, "a directory of the user's was taken for a model's"
assert (directory / "mine" / "notes.txt").read_text() == "mine"
shutil.copytree(directory / "model", directory / ".saving-model")
assert writer.prepare() == [6]
assert not (directory / ".saving-model").exists()

# the mark of a run that is done is its own job's: another one trains on
assert not done.is_done(str(directory), "uid")
done.mark_done(task, {"step": 6, "loss": None})
assert json.loads((directory / "DONE").read_text()) == {"uid": "uid", "step": 6, "status": {"step": 6}}
assert done.is_done(str(directory), "uid")
assert not done.is_done(str(directory), "another")
assert writer.prepare() == [6]
writer.owner.release()
assert (directory / "DONE").exists()
another = Task("test", "default", "another", "chief", 0, checkpoint=Checkpoint(str(directory)))
other = writing.Writer(another, another.checkpoint, lambda **keys: None, print)
other.prepare()
other.owner.release()
assert not (directory / "DONE").exists()
print("all well")
