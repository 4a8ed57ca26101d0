# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.process.failure: the line of an exception that says what is wrong, and whether that may pass."""

import errno
import socket
import urllib.error
from email.message import Message
from pathlib import Path
from typing import Any

import pytest

from dtjob_trainer.errors import (
    CheckpointError,
    CheckpointInUseError,
    DataError,
    FitError,
    MissingDeviceError,
    StateError,
    StrategyError,
)
from dtjob_trainer.process.failure import (
    LONGEST_LINE,
    OWN_STEPS,
    described,
    in_one_line,
    may_pass,
    note_advice,
)
from tests.unit.trainer.raised import of_a_program, of_tensorflow

KERAS = (
    "Exception encountered when calling Sequential.call().\n\n"
    "\x1b[1mInput 0 of layer 'dense' is incompatible with the layer: expected axis -1 to have value 5\x1b[0m\n\n"
    "Arguments received by Sequential.call():\n  • inputs=tf.Tensor(shape=(None, 8), dtype=float32)"
)
GRAPH = (
    "Graph execution error:\n\nDetected at node loss/SparseSoftmax defined at (most recent call last):\n"
    '  File "/app/train.py", line 18, in <module>\n\n  File "/app/train.py", line 10, in show\n\n'
    "Received a label value of 7 which is outside the valid range of [0, 2).\n\t [[{{node loss/SparseSoftmax}}]]"
)
PIPELINE = (
    "Graph execution error:\n\nDetected at node PyFunc defined at (most recent call last):\n"
    "<stack traces unavailable>\n{error}\nTraceback (most recent call last):\n\n"
    '  File "/app/train.py", line 9, in rows\n\n{error}\n\n\n\t [[{{{{node PyFunc}}}}]]\n'
    "\t [[while/body/_1/while/IteratorGetNextAsOptional]] [Op:__inference_several_305]"
)
"""What data says whose elements a step takes by itself."""
CONVERTED = (
    'in user code:\n\n    File "/app/train.py", line 22, in step  *\n        return strategy.run(replica)\n'
    '    File "/app/train.py", line 5, in replica  *\n        raise ValueError("two")\n\n    ValueError: {message}\n'
)
"""What AutoGraph makes of an error within a `tf.function`."""
TWO_REPLICAS = (
    "Graph execution error:\n\nDetected at node a defined at (most recent call last):\n<stack traces unavailable>\n"
    "Detected at node b defined at (most recent call last):\n<stack traces unavailable>\n2 root error(s) found.\n"
    "  (0) INVALID_ARGUMENT:  indices[0,0] = 99 is not in [0, 9)\n\t [[{{node a}}]]\n"
    "  (1) INVALID_ARGUMENT:  indices[0,0] = 98 is not in [0, 9)\n\t [[{{node b}}]]"
)

NUMERICS = (
    "Graph execution error:\n\nDetected at node c defined at (most recent call last):\n<stack traces unavailable>\n"
    '2 root error(s) found.\n  (0) INVALID_ARGUMENT:  \n\n!!! Detected Infinity or NaN in output 0 of graph op "c" (# '
    "of outputs: 2) !!!\n  dtype: <dtype: 'float32'>\n\n : Tensor had NaN values\n\t [[{{node c}}]]"
)
"""Of tf.debugging.enable_check_numerics(), on a GPU."""


def told(error: BaseException, **more: bool) -> dict[str, Any]:
    """What is reported of an error of a program that was started in /app."""
    return described(error, Path("/app"), **more)


class _ArrayMemoryError(MemoryError):
    """Named as NumPy's."""


def named(name: str, module: str = __name__) -> type[Exception]:
    """A class of errors with the name of one of TensorFlow's."""
    return type(name, (Exception,), {"__module__": module})


UnknownError, InternalError, UnavailableError = map(named, ("UnknownError", "InternalError", "UnavailableError"))
AbortedError, ResourceExhaustedError = map(named, ("AbortedError", "ResourceExhaustedError"))
OF_A_DATA_WORKER = (
    "{{function_node __wrapped__IteratorGetNextAsOptional_device_/job:localhost}} Failed to get element from worker "
    "127.0.0.1:21405: Failed to get an element, with a nonretryable error: Failed to get element: Error in "
    "user-defined function passed to ParallelMapDatasetV2:9 transformation with iterator: Iterator::Root::Parallel: "
)
OF_TENSORFLOW = named("ResourceExhaustedError", "tensorflow.python.framework.errors_impl")


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (FitError("epochs=0 must be at least 1"), "FitError: epochs=0 must be at least 1"),
        (ValueError("\n  \n first \nsecond"), "ValueError: first"),
        (ValueError(""), "ValueError"),
        (KeyError("x"), "KeyError: 'x'"),
        (_ArrayMemoryError("Unable to allocate 8.00 PiB"), "MemoryError: Unable to allocate 8.00 PiB"),
        (
            RuntimeError(GRAPH),
            "RuntimeError: Received a label value of 7 which is outside the valid range of [0, 2).",
        ),
        (RuntimeError(PIPELINE.format(error="ValueError: row 40")), "RuntimeError: ValueError: row 40"),
        (UnknownError(PIPELINE.format(error="ValueError: row 40")), "ValueError: row 40"),
        (UnknownError("CUDNN_STATUS_FAILED: of a GPU"), "UnknownError: CUDNN_STATUS_FAILED: of a GPU"),
        (ValueError(CONVERTED.format(message="weights: of two")), "ValueError: weights: of two"),
        (
            ValueError(CONVERTED.format(message=KERAS.replace("\n", "\n    "))),
            "ValueError: Input 0 of layer 'dense' is incompatible with the layer: expected axis -1 to have value 5",
        ),
        (
            RuntimeError(NUMERICS),
            'RuntimeError: !!! Detected Infinity or NaN in output 0 of graph op "c" (# of outputs: 2) !!!',
        ),
        (RuntimeError(TWO_REPLICAS), "RuntimeError: indices[0,0] = 99 is not in [0, 9)"),
        (
            RuntimeError("{{function_node f}} /data/a.csv; No such file or directory [Op:IteratorGetNext] name: "),
            "RuntimeError: /data/a.csv; No such file or directory",
        ),
        (
            RuntimeError(f"{OF_A_DATA_WORKER}bad row : Tensor had NaN values"),
            "RuntimeError: bad row : Tensor had NaN values",
        ),
        (RuntimeError("Graph execution error:"), "RuntimeError: Graph execution error:"),
        (ValueError("x" * 1000), f"ValueError: {'x' * (LONGEST_LINE - 1)}…"),
    ],
)
def test_an_error_is_described_in_one_line(error: BaseException, text: str) -> None:
    assert in_one_line(error) == text


def test_an_error_of_the_trainers_own_keeps_its_advice() -> None:
    """What to write instead is at its end."""
    text = f"{'x' * 300}; write another"
    assert in_one_line(FitError(text)) == f"FitError: {text}"


def test_the_end_by_argparse_has_its_line() -> None:
    code = (
        "import argparse\nparser = argparse.ArgumentParser('train.py')\nparser.add_argument('--data', required=True)\n"
    )
    error = of_a_program(Path("/app/train.py"), f"{code}parser.parse_args([])\n")
    assert told(error) == {
        "type": "SystemExit",
        "message": "train.py: error: the following arguments are required: --data",
        "location": "train.py:4",
    }


def test_an_error_after_all_training_is_told_so() -> None:
    error = of_a_program(Path("/app/train.py"), "open('/no/file')\n")
    assert told(error, trained=True) == {
        "type": "FileNotFoundError",
        "message": "[Errno 2] No such file or directory: '/no/file'",
        "location": "train.py:1",
        "trained": True,
    }


NCCL = "Collective ops is aborted by: NCCL: "
STATEFUL = "Stateful RNNs (created with `stateful=True`) are not yet supported with tf.distribute.Strategy."
SHAPES = "x (None, 8), y (None, 7), and gives (None, 3)"


@pytest.mark.parametrize(
    ("error", "end"),
    [
        (InternalError(f"{NCCL}invalid usage"), "where tasks share one, communication must be Ring)"),
        (ValueError(STATEFUL), "(set stateful=False, use layers of Keras 3, or set strategy: Default to train in one "
                               "process)"),
        (ValueError("Dimensions must be equal, but are 7 and 3 for '{{node sub}}'\nmore"), f"({SHAPES})"),
        (ValueError("shapes " * LONGEST_LINE), f"… ({SHAPES})"),
        (ValueError(f"{'x' * LONGEST_LINE} shape (8,)"), f"x shape (8,) ({SHAPES})"),
        (named("NotFoundError")(f"{OF_A_DATA_WORKER}/data/a.csv; No such file"), "replicaSpecs.data.template too)"),
        (named("NotFoundError")("/data/a.csv; No such file"), "No such file"),
        (InternalError(f"{NCCL}remote process exited"), "exited"),
        (ValueError("something else"), "else"),
        (ValueError("reshape is not a shaper"), "shaper"),
        (KeyError("shape"), "'shape'"),
    ],
)  # fmt: skip
def test_an_error_gets_the_advice_that_its_message_lacks(error: BaseException, end: str) -> None:
    note_advice(error, lambda: SHAPES, members=2)
    assert in_one_line(error).endswith(end)
    assert not may_pass(error)


def test_shapes_that_nobody_can_tell_hide_no_error() -> None:
    error = ValueError("shape")
    note_advice(error, lambda: str(1 / 0), members=1)
    assert in_one_line(error) == "ValueError: shape"


@pytest.mark.parametrize(
    "error",
    [
        ValueError(
            "in user code:\n\n    File x\n\n    ValueError: DistributedVariable.handle is not "
            "available outside the replica context or a `tf.distribute.Strategy.update()` call."
        ),
        AttributeError("'NoneType' object has no attribute 'merge_call'"),
        RuntimeError("`apply_gradients() cannot be called in cross-replica context. Use `tf.distribute.Strategy.run`"),
        ValueError("SyncOnReadVariable does not support `assign_add` in cross-replica context when aggregation is set"),
    ],
)
def test_a_training_step_outside_of_strategy_run_says_what_to_call(error: Exception) -> None:
    assert told(error) == {"type": type(error).__name__, "message": OWN_STEPS, "permanent": True}
    note_advice(error, str, members=1)
    assert error.__notes__ == [OWN_STEPS]


def _http(code: int) -> urllib.error.HTTPError:
    return urllib.error.HTTPError("https://a", code, "", Message(), None)


@pytest.mark.parametrize(
    ("error", "passes"),
    [
        (ConnectionRefusedError(111, "refused"), True),
        (TimeoutError(), True),
        (socket.gaierror(-3, "Temporary failure in name resolution"), True),
        (urllib.error.URLError("no route"), True),
        (_http(503), True),
        (_http(404), False),
        (of_tensorflow(UnavailableError("failed to connect to all addresses")), True),
        (UnavailableError("failed to connect to my database"), False),
        (of_tensorflow(AbortedError("Stale file handle")), True),
        (OSError(errno.ESTALE, "Stale file handle"), True),
        (UnknownError(PIPELINE.format(error="OSError: [Errno 5] Input/output error")), True),
        (UnknownError(PIPELINE.format(error="ConnectionResetError: [Errno 104] Connection reset by peer")), True),
        (UnknownError(PIPELINE.format(error="KeyError: 'x'")), False),
        (UnknownError("CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered"), True),
        (InternalError("cudaSetDevice() on GPU:0 failed. Status: out of memory"), True),
        (InternalError("uncorrectable ECC error encountered"), True),
        (InternalError("Blas xGEMM launch failed"), False),
        (MissingDeviceError("this task was given 1 of nvidia.com/gpu"), True),
        (StrategyError("this task was given 1 of nvidia.com/gpu"), False),
        (FileNotFoundError(errno.ENOENT, "No such file"), False),
        (MemoryError(), False),
    ],
)
def test_only_errors_of_connections_and_storage_are_transient(error: BaseException, passes: bool) -> None:
    assert may_pass(error) is passes


def test_an_error_is_transient_if_the_error_that_it_comes_from_is() -> None:
    error = ValueError("URL fetch failure")
    error.__context__ = ConnectionResetError("reset")
    assert told(error) == {"type": "ValueError", "message": "URL fetch failure", "transient": True}
    error.__suppress_context__ = True  # raise … from None
    assert told(error) == {"type": "ValueError", "message": "URL fetch failure"}
    refusal = DataError("x: its files cannot be read")
    refusal.__cause__ = ConnectionResetError("reset")
    assert told(refusal) == {"type": "DataError", "message": "x: its files cannot be read", "transient": True}
    error.__context__ = error
    assert not may_pass(error)


@pytest.mark.parametrize(
    ("error", "permanent"),
    [
        (FitError("epochs"), True),
        (StateError("the checkpoint is of another model"), True),
        (StrategyError("this node has no GPU"), False),  # another node may have one
        (CheckpointError("the disk is full"), False),
        (ValueError("of the program's own"), False),
    ],
)
def test_only_errors_that_the_program_must_correct_are_permanent(error: BaseException, permanent: bool) -> None:
    assert told(error).get("permanent", False) is permanent


@pytest.mark.parametrize(
    ("error", "exhausted"),
    [
        (MemoryError(), True),
        (_ArrayMemoryError("Unable to allocate 8.00 PiB"), True),
        (of_tensorflow(OF_TENSORFLOW("OOM when allocating tensor")), True),
        (of_a_program(Path("/app/layer.py"), "raise error", error=OF_TENSORFLOW("OOM, in a layer")), True),
        (ResourceExhaustedError("of the program's own"), False),
        (OSError(errno.ENOSPC, "No space left on device"), True),
        (CheckpointError("the disk is full"), True),
        (CheckpointInUseError("another job writes there"), False),
        (FileNotFoundError(errno.ENOENT, "No such file"), False),
    ],
)
def test_an_error_over_memory_or_storage_that_is_used_up_is_told_so(error: BaseException, exhausted: bool) -> None:
    assert told(error).get("exhausted", False) is exhausted
