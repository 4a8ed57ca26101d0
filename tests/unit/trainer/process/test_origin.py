# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.process.origin: the line of the program that an exception came through, and who has raised it."""

import site
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dtjob_trainer.process import runtime
from dtjob_trainer.process.origin import is_raised_by_tensorflow, line_of_argparse, location_of, without_our_frames
from tests.unit.trainer.raised import of_a_program, of_tensorflow, raise_as_tensorflow

APP = Path("/app")
INSTALLED = site.getsitepackages()[0]


class OpError(Exception):
    """From the module of TensorFlow's errors."""


OpError.__module__ = "tensorflow.python.framework.errors_impl"


def through(*files: str, text: str = "x", kind: type[Exception] = ValueError) -> BaseException:
    """An error that came through line 2 of each of these files, the last one of which has raised it. The first is the
    main file."""
    surroundings = {"__name__": "lib", "kind": kind, "text": text}
    code = compile("\nraise kind(text)", files[-1], "exec")
    for file in reversed(files[:-1]):
        surroundings = {**surroundings, "code": code, "surroundings": surroundings}
        code = compile("\nexec(code, surroundings)", file, "exec")
    with pytest.raises(kind) as raised:
        exec(code, {**surroundings, "__name__": "__main__"})
    assert raised.value.__traceback__ is not None
    return raised.value.with_traceback(raised.value.__traceback__.tb_next)


@pytest.mark.parametrize(
    ("files", "location"),
    [
        (["/app/train.py"], "train.py:2"),
        (["train.py"], "train.py:2"),
        (["/app/train.py", "/app/lib/data.py"], "lib/data.py:2"),
        (["/app/train.py", "/app/lib/data.py", f"{INSTALLED}/keras/src/layers/core.py"], "lib/data.py:2"),
        (["/app/train.py", f"{INSTALLED}/keras/src/model.py", "/app/lib/loss.py"], "lib/loss.py:2"),
        (["/app/train.py", f"{sysconfig.get_path('stdlib')}/json/decoder.py"], "train.py:2"),
        (["/app/train.py", runtime.__file__], "train.py:2"),
        (["/app/train.py", "<string>", "/tmp/__autograph_generated_file1.py"], "train.py:2"),
        (["/app/.venv/lib/python3.11/site-packages/x.py"], ".venv/lib/python3.11/site-packages/x.py:2"),
        (["/elsewhere/train.py"], "train.py:2"),
        (["/elsewhere/train.py", "/elsewhere/a/b.py"], "a/b.py:2"),
        (["/app/train.py", "/shared/code/b.py"], "/shared/code/b.py:2"),
        ([f"{INSTALLED}/mine/train.py", f"{INSTALLED}/mine/a.py", f"{INSTALLED}/keras/a.py"], "a.py:2"),
        (["<string>"], ""),
    ],
)
def test_the_location_is_the_last_line_of_the_programs_own_files(files: list[str], location: str) -> None:
    assert location_of(through(*files), APP) == location


CONVERTED = (
    'in user code:\n\n    File "/app/train.py", line 22, in step  *\n        return run(replica)\n'
    f'    File "{INSTALLED}/keras/src/model.py", line 5, in call  **\n        raise ValueError\n\n    ValueError: two\n'
)
PIPELINE = (
    "KeyError: 7\nTraceback (most recent call last):\n\n"
    '  File "/any/tensorflow/python/ops/script_ops.py", line 269, in __call__\n    ret = func()\n\n'
    '  File "/app/train.py", line 22, in rows\n    raise KeyError\n\nKeyError: 7'
)


@pytest.mark.parametrize("text", [CONVERTED, PIPELINE])
def test_the_location_is_in_the_message_of_an_error_that_tensorflow_has_made(text: str) -> None:
    assert location_of(through("/app/train.py", text=text, kind=OpError), APP) == "train.py:22"


def test_files_that_any_other_message_quotes_are_no_location() -> None:
    error = through("/app/train.py", text='cannot read File "/app/other.py", line 7')
    assert location_of(error, APP) == "train.py:2"


def test_a_file_that_python_cannot_read_as_code_has_its_own_line() -> None:
    with pytest.raises(SyntaxError) as raised:
        compile("x = 1\nx = = 2\n", "/app/train.py", "exec")
    assert location_of(raised.value, APP) == "train.py:2"


GRAPH = (
    "Graph execution error:\n\nDetected at node dense/MatMul defined at (most recent call last):\n"
    '  File "/app/train.py", line 18, in <module>\n\n  File "/app/train.py", line 10, in step\n\n'
    "OOM when allocating tensor with shape[9999,9999]\n\t [[{{node dense/MatMul}}]] [Op:__inference_step_44]"
)


def test_an_error_of_an_operation_is_tensorflows_whoever_has_defined_the_operation() -> None:
    """Else a lost peer or used up memory in a step of a `tf.function` would be a mistake of the program."""
    error = of_tensorflow(OpError(GRAPH))
    assert is_raised_by_tensorflow(error)
    assert location_of(error, APP) == "train.py:10"
    in_python = f'{GRAPH}\nTraceback (most recent call last):\n\n  File "/app/train.py", line 9, in rows\n'
    assert not is_raised_by_tensorflow(of_tensorflow(OpError(in_python)))


def test_an_error_is_tensorflows_if_keras_has_left_its_frames_out() -> None:
    keras = f"{INSTALLED}/keras/src/utils/traceback_utils.py"
    assert is_raised_by_tensorflow(through("/app/train.py", keras, kind=OpError))
    assert not is_raised_by_tensorflow(through("/app/train.py", keras, "/app/layer.py", kind=OpError))


def test_real_errors_of_tensorflow_and_of_a_program_are_told_apart() -> None:
    import keras
    import tensorflow as tf

    many = 1 << 30

    def own() -> None:
        raise tf.errors.UnavailableError(None, None, "my database is away")

    def rows() -> Iterator[int]:
        yield 1
        own()

    def all_rows() -> object:
        data = tf.data.Dataset.from_generator(rows, output_signature=tf.TensorSpec([], tf.int32))
        return data.reduce(0, lambda one, other: one + other)

    calls: list[tuple[Callable[[], object], bool]] = [
        (lambda: tf.zeros([many, many]), True),
        (lambda: tf.fill([many, 1 << 20], 1.0), True),
        (lambda: tf.function(lambda n: tf.reduce_sum(tf.zeros([n, 1 << 20])))(tf.constant(many)), True),
        (lambda: keras.layers.RepeatVector(many)(tf.ones((64, 1 << 10))), True),
        (own, False),
        (tf.function(own), False),
        (all_rows, False),
        (tf.function(all_rows), False),
    ]
    for number, (call, is_theirs) in enumerate(calls):
        with pytest.raises(tf.errors.OpError) as raised:
            call()
        assert is_raised_by_tensorflow(raised.value) is is_theirs, (number, str(raised.value))


def test_the_frames_before_the_program_are_left_out() -> None:
    def runs() -> None:
        exec(compile("exec(compile('raise KeyError', '/app/train.py', 'exec'))", "<frozen runpy>", "exec"), runpys)

    runpys = {"__name__": "runpy"}
    mains = {"__name__": "dtjob_trainer.run", "runs": runs}
    with pytest.raises(KeyError) as raised:
        exec(compile("runs()", "run.py", "exec"), mains)
    raised.value.__traceback__ = raised.value.__traceback__.tb_next  # type: ignore[union-attr]
    shown = without_our_frames(raised.value)
    assert shown is not None
    assert shown.tb_frame.f_code.co_name == "runs"


def test_only_an_exit_by_argparse_has_its_line() -> None:
    begin = "import argparse\nparser = argparse.ArgumentParser('train.py')\n"
    error = of_a_program(APP / "train.py", f"{begin}parser.parse_args(['--epochs'])\n")
    assert isinstance(error, SystemExit)
    assert line_of_argparse(error) == "train.py: error: unrecognized arguments: --epochs"
    assert line_of_argparse(SystemExit(2)) == ""
    with pytest.raises(SystemExit) as raised:
        raise_as_tensorflow(SystemExit(2))
    assert line_of_argparse(raised.value) == ""
