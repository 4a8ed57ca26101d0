# SPDX-License-Identifier: Apache-2.0
"""Where an exception comes from: which line of the program, and whether TensorFlow itself has raised it.

Reads the traceback. Exceptions in Python code that TensorFlow calls (data functions, `tf.function`) reach the program
as other exceptions, whose message has the traceback as text.
"""

import argparse
import os
import re
import sysconfig
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import FrameType, TracebackType

_IN_TEXT = re.compile(r'File "([^"]+)", line (\d+)')
_OF_AUTOGRAPH = "in user code:"
"""Begins the message of an error within a `tf.function` while its graph is made."""
_OF_PYTHON = "Traceback (most recent call last):"
"""Before the frames of an error within a data function. A message about an operation of a graph has frames without
this line: those in which the operation was defined. They do not say who has raised the error."""
_TENSORFLOW = re.compile(r"/tensorflow/(dtensor/)?python/")
"""Part of the path of each Python file of TensorFlow. Functions such as `tf.zeros` come through those of dtensor."""
_FILTER_OF_KERAS = "keras/src/utils/traceback_utils.py"
"""The end of the path of a file of Keras 3 and tf_keras, which leaves their frames and TensorFlow's out of tracebacks.
If its own frame is the last one, TensorFlow or Keras has raised the error."""
_PACKAGES = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
_LIBRARIES = tuple({f"{sysconfig.get_path(name)}{os.sep}" for name in ("stdlib", "platstdlib")})
_OURS = f"{Path(__file__).resolve().parent.parent}{os.sep}"
_GENERATED = "__autograph_generated_file"
"""Begins the name of a file that AutoGraph makes of a function of the program."""
_BEFORE_THE_PROGRAM = ("runpy", "dtjob_trainer.run")
"""Modules whose frames come before the first one of the program."""


def location_of(error: BaseException, begun_in: Path) -> str:
    """The last line of the program's own files that `error` came through, such as `train.py:12`; empty if none is
    known.

    - begun_in: the directory in which the program was started. Paths of files below it are relative to it.
    """
    home = _home(error, begun_in)
    own = [place for place in _places(error) if _is_the_programs(place[0], begun_in, home)]
    if not own:
        return ""
    file, line = own[-1]
    path = begun_in / file
    for directory in (begun_in, home):
        if directory is not None and path.is_relative_to(directory):
            return f"{path.relative_to(directory)}:{line}"
    return f"{path}:{line}"


def is_raised_by_tensorflow(error: BaseException) -> bool:
    """Whether code of TensorFlow has raised `error`, and not Python code of the program or of a package that it uses.

    A class of TensorFlow is no evidence: `raise tf.errors.UnavailableError(…)` is open to any program.
    """
    text = _text_of(error)
    raised = text if text.startswith(_OF_AUTOGRAPH) else text.partition(_OF_PYTHON)[2]
    files = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)]
    files += [file for file, _ in _IN_TEXT.findall(raised)]
    return bool(files) and bool(_TENSORFLOW.search(files[-1]) or files[-1].endswith(_FILTER_OF_KERAS))


def is_of_tensorflows_class(error: BaseException) -> bool:
    """Whether the class of `error` is one of TensorFlow's, whoever has raised it."""
    return type(error).__module__.startswith("tensorflow.")


def without_our_frames(error: BaseException) -> TracebackType | None:
    """The traceback of `error` from the program's first frame on, as `python train.py` has it; all of it if the
    program is not in it."""
    step = error.__traceback__
    while step is not None and _module(step.tb_frame) in _BEFORE_THE_PROGRAM:
        step = step.tb_next
    return step or error.__traceback__


def line_of_argparse(leave: SystemExit) -> str:
    """What argparse has printed last before this exit: `train.py: error: …`. Empty if argparse was not the reason."""
    for frame, _ in traceback.walk_tb(leave.__traceback__):
        parser = frame.f_locals.get("self")
        if frame.f_code is argparse.ArgumentParser.error.__code__ and isinstance(parser, argparse.ArgumentParser):
            return f"{parser.prog}: error: {frame.f_locals.get('message')}"
    return ""


def _places(error: BaseException) -> Iterator[tuple[str, int]]:
    """The files and lines that `error` came through, the innermost last. Those in its message come after those of its
    traceback, because they are of the code that raised it first."""
    for frame, line in traceback.walk_tb(error.__traceback__):
        yield frame.f_code.co_filename, line
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        yield error.filename, error.lineno
    for file, line in _IN_TEXT.findall(_text_of(error)):
        yield file, int(line)


def _text_of(error: BaseException) -> str:
    """The message of an error that TensorFlow has made of one in Python code; empty for others, whose text may quote
    any file."""
    text = str(error)
    return text if is_of_tensorflows_class(error) or text.startswith(_OF_AUTOGRAPH) else ""


def _home(error: BaseException, begun_in: Path) -> Path | None:
    """The directory of the program's main file; None if it did not run."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if _module(frame) == "__main__" and not frame.f_code.co_filename.startswith("<"):
            return (begun_in / frame.f_code.co_filename).parent
    return None


def _is_the_programs(file: str, begun_in: Path, home: Path | None) -> bool:
    """Whether the file is one of the program's: one that is not installed, or one beside an installed main file."""
    if file.startswith("<") or Path(file).name.startswith(_GENERATED):
        return False
    path = begun_in / file
    if home is not None and path.is_relative_to(home):
        return not any(part in f"{os.sep}{path.relative_to(home)}" for part in _PACKAGES)
    return not str(path).startswith((*_LIBRARIES, _OURS)) and not any(part in str(path) for part in _PACKAGES)


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))
