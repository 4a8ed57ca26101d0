"""`fit` under each strategy against Keras's own `Model.fit` on one device: losses, metrics and weights to 1e-6."""

import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.trainer.support.harness import PROGRAMS, ROOT, Cluster

PROGRAM = "one_device.py"
TOLERANCE = {"mixed_precision": 0.05}
"""Where numbers have fewer bits than float32."""
LOSSES = (
    "weighted_arrays,weighted_dataset,summed_loss,class_weights,class_weights_of_one_hot_rows,masks,masks_and_weights,"
    "many_inputs_and_outputs,list_of_outputs,added_losses_constraints_and_many_metrics,"
    "own_compute_loss_and_loss_that_is_one_number,own_metrics,metrics_that_count"
)
STEPS = (
    "clipping,accumulation,accumulation_of_sparse_gradients,loss_scale,several_steps_in_one_call,"
    "epochs_of_a_number_of_steps,mixed_precision,callbacks,stop_within_an_epoch"
)
KERAS_3 = STEPS + ",several_optimizers_in_one"
"""What there is in Keras 3 alone, too."""
SOME = (
    "weighted_arrays,summed_loss,masks_and_weights,many_inputs_and_outputs,clipping,accumulation,"
    "accumulation_of_sparse_gradients,loss_scale,several_steps_in_one_call,callbacks"
)
OFTEN = "weighted_arrays,masks_and_weights,clipping,accumulation,several_optimizers_in_one"
"""Those that `make test` runs."""
ARRAYS = (
    "weighted_arrays,masks,list_of_outputs,clipping,accumulation,metrics_that_count,"
    "added_losses_constraints_and_many_metrics"
)
"""CentralStorage takes no empty replica, and of a Dataset nobody knows whether there will be one."""
ASYNCHRONOUS = "weighted_arrays,class_weights,masks,many_inputs_and_outputs,clipping,metrics_that_count"
"""With one worker, steps come in their order, and can be compared."""
AVERAGES = "moving_averages"
ONE_REPLICA = "own_train_step"
"""Several replicas leave out what is no full batch."""


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., dict[str, Any]]:
    """What Keras's own `Model.fit` makes of each case, for some arguments of the program."""

    @cache
    def run(*arguments: str) -> dict[str, Any]:
        out = tmp_path_factory.mktemp("reference") / "out.pickle"
        environ = {name: value for name, value in os.environ.items() if not name.startswith(("DTJOB_", "TF_CONFIG"))}
        environ |= {"PYTHONPATH": str(ROOT / "trainer_image"), "TF_CPP_MIN_LOG_LEVEL": "2"}
        command = [sys.executable, str(PROGRAMS / PROGRAM), "--reference", f"--out={out}", *arguments]
        result = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stderr
        found: dict[str, Any] = pickle.loads(out.read_bytes())
        return found

    return run


def flat(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every number, text and array of nested dicts and lists, by its path."""
    if isinstance(value, dict | list | tuple):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, part in items:
            yield from flat(part, f"{path}/{key}")
    else:
        yield path, value


@pytest.mark.parametrize(
    ("package", "strategy", "counts", "devices", "cases"),
    [
        ("keras", "MultiWorkerMirrored", {"worker": 2}, 0, OFTEN),
        *(
            pytest.param(package, strategy, counts, devices, cases, marks=pytest.mark.slow)
            for package, strategy, counts, devices, cases in (
                ("keras", "Mirrored", {"chief": 1}, 3, LOSSES),
                ("keras", "Mirrored", {"chief": 1}, 3, KERAS_3),
                ("keras", "MultiWorkerMirrored", {"worker": 2}, 0, SOME),
                ("keras", "OneDevice", {"chief": 1}, 0, f"{SOME},{ONE_REPLICA}"),
                ("keras", "CentralStorage", {"chief": 1}, 2, ARRAYS),
                ("keras", "ParameterServer", {"chief": 1, "worker": 1, "ps": 1}, 0, ASYNCHRONOUS),
                ("tf_keras", "Mirrored", {"chief": 1}, 3, LOSSES),
                ("tf_keras", "Mirrored", {"chief": 1}, 3, STEPS),
                ("tf_keras", "MultiWorkerMirrored", {"worker": 2}, 0, SOME),
                ("tf_keras", "OneDevice", {"chief": 1}, 0, f"{SOME},{ONE_REPLICA}"),
                ("tf_keras", "CentralStorage", {"chief": 1}, 2, ARRAYS),
                ("tf_keras", "ParameterServer", {"chief": 1, "worker": 1, "ps": 1}, 0, ASYNCHRONOUS),
                ("keras", "Default", {"chief": 1}, 0, AVERAGES),  # Keras 3's fail inside TensorFlow's strategies
                ("tf_keras", "Default", {"chief": 1}, 0, AVERAGES),
                ("tf_keras", "Mirrored", {"chief": 1}, 3, AVERAGES),
                ("tf_keras", "MultiWorkerMirrored", {"worker": 2}, 0, AVERAGES),
                ("tf_keras", "CentralStorage", {"chief": 1}, 2, AVERAGES),
                ("tf_keras", "ParameterServer", {"chief": 1, "worker": 1, "ps": 1}, 0, AVERAGES),
            )
        ),
    ],
)
@pytest.mark.timeout(900)
def test_equals_one_device(
    reference: Callable[..., dict[str, Any]],
    tmp_path: Path,
    package: str,
    strategy: str,
    counts: dict[str, int],
    devices: int,
    cases: str,
) -> None:
    out = tmp_path / "out.pickle"
    examples = ("--examples=62" if strategy == "CentralStorage" else "--examples=61", f"--package={package}")
    options = {"logicalCPUs": devices} if devices else {}
    with Cluster(
        tmp_path, strategy, counts, PROGRAM, f"--out={out}", f"--cases={cases}", *examples, options=options
    ) as run:
        run.start()
        run.expect_success(*(task for task in run.tasks if strategy != "ParameterServer" or task == "chief-0"))
    found = pickle.loads(out.read_bytes())
    by_keras = reference(*examples, f"--cases={cases}")
    assert set(found) == set(cases.split(","))
    wrong = []
    for case, values in found.items():
        tolerance = TOLERANCE.get(case, 1e-6)
        expected, actual = dict(flat(by_keras[case])), dict(flat(values))
        assert expected.keys() == actual.keys(), case
        for path, value in expected.items():
            if isinstance(value, str):
                assert actual[path] == value
            elif not np.allclose(actual[path], value, rtol=tolerance, atol=tolerance, equal_nan=True):
                wrong.append(f"{case}{path}: {actual[path]} for {value}")
    assert not wrong, "\n".join(wrong)
