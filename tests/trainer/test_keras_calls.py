# SPDX-License-Identifier: Apache-2.0
"""Whatever Keras's own loop asks of model, optimizer and callbacks, ours does too, or the reason why not stands here.

Keras's side is read from the source that is installed, ours is recorded in a run under Mirrored: a Keras that calls
something new fails here.
"""

import json
from pathlib import Path

import pytest

from tests.trainer.support.harness import Cluster
from tests.trainer.support.keras_calls import Asked, asked_for

PREDICTS = "of predict() alone"
DATA = "of the data, which is read and dealt out by ours"
BUILDS = "models/keras3_model.py builds at the start, from specs, in every strategy"
STEP = "engines/ trace a step that is the same under every strategy"
JIT = "of how Keras compiles its own functions"
OWN = "called where the model's class has its own; test_one_device.py trains one"
SUMMED = "steps/optimizer_steps.py does the same with what is summed over the replicas"
SCALED = "steps/optimizer_steps.py does the same, once for all replicas"

NOT_ASKED = {
    "keras": {
        ("callbacks", "on_predict_batch_end"): PREDICTS,
        ("model", "_assert_compile_called"): "check() refuses a model that is not compiled",
        ("model", "_autoconvert_optionals"): DATA,
        ("model", "_compiled_trainable_state"): "of a warning that Keras 3.15 never comes to",
        ("model", "_distribute_strategy"): STEP,
        ("model", "_eval_epoch_iterator"): DATA,
        ("model", "_flatten_metrics_in_order"): "of evaluate() as a user calls it: a list instead of a dict",
        ("model", "_get_metrics_result_or_logs"): "engines/engine.py chooses in the same way, over all replicas",
        ("model", "_initial_epoch"): "set by BackupAndRestore, which is left out",
        ("model", "_make_function"): STEP,
        ("model", "_maybe_symbolic_build"): BUILDS,
        ("model", "_resolve_auto_jit_compile"): "what `jit_compile` asks, which is asked for",
        ("model", "_should_eval"): "loops/fit_arguments.py reads validation_freq",
        ("model", "_warn_if_trainable_state_changed"): "a warning that Keras 3.15 never comes to",
        ("model", "distribute_strategy"): STEP,
        ("model", "evaluate"): "loops/evaluate.py validates, over all tasks",
        ("model", "make_test_function"): STEP,
        ("model", "make_train_function"): STEP,
        ("model", "run_eagerly"): "left aside, with a warning",
        ("model", "test_function"): STEP,
        ("model", "test_step"): OWN,
        ("model", "train_function"): STEP,
        ("model", "train_step"): OWN,
        ("model", "unrolled_steps_per_execution"): JIT,
        ("optimizer", "_backend_increment_gradient_accumulators"): SUMMED,
        ("optimizer", "_backend_reset_gradient_accumulators"): SUMMED,
        ("optimizer", "_common_apply"): SCALED,
        ("optimizer", "_stateful_handle_finite_grads"): SCALED,
        ("optimizer", "_stateful_handle_non_finite_grads"): SCALED,
        ("optimizer", "_untrack_variable"): "of a learning rate that is set to a schedule",
        ("optimizer", "_update_model_variables_moving_average"): "models/averages.py does it for all replicas at once",
    },
    "tf_keras": {
        ("model", "autotune_steps_per_execution"): JIT,
        ("model", "distribute_reduction_method"): STEP,
        ("model", "distribute_strategy"): STEP,
        ("model", "dynamic"): "left aside, with a warning",
        ("model", "evaluate"): "loops/evaluate.py validates, over all tasks",
        ("model", "make_test_function"): STEP,
        ("model", "make_train_function"): STEP,
        ("model", "metrics_names"): "of evaluate() as a user calls it: a list instead of a dict",
        ("model", "predict_function"): PREDICTS,
        ("model", "run_eagerly"): "left aside, with a warning",
        ("model", "test_function"): STEP,
        ("model", "train_function"): STEP,
        ("model", "train_tf_function"): STEP,
    },
}
"""What Keras's loop asks for and ours does not, and why."""
SINCE_3_16 = {
    ("optimizer", "_backend_maybe_overwrite_model_variables"): "models/averages.py does it for all replicas at once",
    ("optimizer", "_unscale_grads"): SCALED,
}
"""The same of the next release (`make trainer-nightly`)."""

HOOKS = [f"on_{of}_{end}" for of in ("train", "test", "epoch", "train_batch", "test_batch") for end in ("begin", "end")]
IN_TRAINER = {"self": "model", "self.optimizer": "optimizer", "callbacks": "callbacks"}
IN_LIST = {"self": "", "callback": "callbacks", "cb": "callbacks", "cbk": "callbacks", "model": "model"}


def by_keras(package: str) -> set[Asked]:
    """What the package's `fit` asks for; of tf_keras, which is done, what is public."""
    if package == "tf_keras":
        found = asked_for(package, ["src/engine/training.py"], ["fit"], IN_TRAINER)
        return {(owner, name) for owner, name in found if not name.startswith("_")}
    trainer = ["src/backend/tensorflow/trainer.py", "src/trainers/trainer.py"]
    optimizer = ["src/optimizers/base_optimizer.py", "src/backend/tensorflow/optimizer.py"]
    scaled = ["src/optimizers/loss_scale_optimizer.py"]
    return (
        asked_for(package, trainer, ["fit"], IN_TRAINER)
        | asked_for(package, ["src/callbacks/callback_list.py"], ["__init__", *HOOKS], IN_LIST)
        | asked_for(package, optimizer, ["apply_gradients"], {"self": "optimizer"})
        | asked_for(package, scaled, ["apply"], {"self": "optimizer"})
    )


@pytest.mark.parametrize("package", ["keras", "tf_keras"])
def test_our_loop_asks_for_all_that_keras_asks_for(tmp_path: Path, package: str) -> None:
    out = tmp_path / "touched.json"
    arguments = ("touched.py", f"--package={package}", f"--out={out}")
    with Cluster(tmp_path, "Mirrored", {"chief": 1}, *arguments, options={"logicalCPUs": 2}) as run:
        run.run()
    ours = {(owner, name) for owner, names in json.loads(out.read_text()).items() for name in names}
    wanted = by_keras(package)
    excused = set(NOT_ASKED[package]) | (SINCE_3_16.keys() & wanted)
    assert len(wanted) > 20, "Keras's source is not found where it was"
    missing = wanted - ours - excused
    assert not missing, f"{package} asks for these, and dt.fit does not: {sorted(missing)}"
    stale = excused & ours | excused - wanted
    assert not stale, f"these need no reason any more: {sorted(stale)}"
