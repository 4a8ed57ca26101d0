# SPDX-License-Identifier: Apache-2.0
"""`fit` under each strategy against Keras's own `Model.fit` on one device: losses, metrics and weights to 1e-6."""

from pathlib import Path

import pytest

from tests.trainer.support.one_device import check

LOSSES = (
    "weighted_arrays,weighted_dataset,summed_loss,class_weights,class_weights_of_one_hot_rows,masks,masks_and_weights,"
    "many_inputs_and_outputs,list_of_outputs,added_losses_constraints_and_many_metrics,"
    "own_compute_loss_and_loss_that_is_one_number,own_metrics,metrics_that_count"
)
STEPS = (
    "clipping,accumulation,accumulation_of_sparse_gradients,loss_scale,several_steps_in_one_call,"
    "epochs_of_a_number_of_steps,mixed_precision,callbacks,stop_within_an_epoch"
)
KERAS_3 = STEPS + ",several_optimizers_in_one,loss_scale_and_accumulation,stop_within_a_validation,float8"
"""What there is in Keras 3 alone, too."""
OPTIMIZERS = "every_optimizer,every_schedule_and_weight_decay"
AVERAGES = "moving_averages,averages_of_every_kind,averages_in_validation"
"""Of weights."""
IN_ONE_TASK = f"{OPTIMIZERS},{AVERAGES},averages_with_accumulation,loss_scale_and_accumulation"
SOME = (
    "weighted_arrays,summed_loss,masks_and_weights,many_inputs_and_outputs,clipping,accumulation,"
    "accumulation_of_sparse_gradients,loss_scale,several_steps_in_one_call,callbacks"
)
PLACED = (
    "gradients_used_otherwise,states_of_losses,rows_in_metrics,metrics_of_all_rows,own_layers_in_wrappers,"
    "layers_of_all_rows,loops_beside_rows,noise_of_rows,temporal_classes,"
    "numbers_of_ragged_rows,numbers_of_sparse_rows"
)
"""Steps, losses and metrics that do more with numbers of rows than reduce them."""
WITH_ROWS = "widths_of_all_rows,updates_in_branches,parts_of_unlike_length"
OFTEN = (
    "weighted_arrays,masks_and_weights,accumulation,returned_values,some_other_losses,step_that_makes_variables,"
    f"{PLACED},updates_in_branches,parts_of_unlike_length,unknown_length,smallest_batches"
)
"""Those that `make test` runs, data of test_one_device_data.py among them."""
OWN_STEPS = "own_train_step,guide_gan,guide_vae,returned_values,step_that_updates_nothing,step_that_makes_variables"
STATES = "metrics_that_keep,metrics_of_a_step_that_keep,layers_that_count,layers_that_normalise"
TABLES = "every_table,tables_of_an_own_step,step_that_clips"
TABLE_OPTIMIZERS = "every_optimizer_of_a_table"
OTHER_LOSSES = (
    "sums_over_rows,means_over_rows,rows_against_rows,masked_means,losses_of_layers,losses_of_own_steps,"
    "losses_of_views,losses_in_functions,losses_of_own_compute_loss,losses_without_layers"
)
"""Those that are no means over rows, or not known to be."""
COMBINED = f"{OWN_STEPS},{STATES}"
"""What replicas put together; Keras 3 has guide_steps, too."""
UNCALLED = f"own_train_step,guide_gan,guide_vae,{STATES}"
"""Those without callbacks for batches."""
ARRAYS = (
    "weighted_arrays,masks,list_of_outputs,clipping,accumulation,metrics_that_count,"
    "added_losses_constraints_and_many_metrics"
)
"""CentralStorage takes no empty replica, and of a Dataset nobody knows whether there will be one."""
ASYNCHRONOUS = "weighted_arrays,class_weights,masks,many_inputs_and_outputs,clipping,metrics_that_count"
"""With one worker, steps come in their order, and can be compared."""
OF_TF_KERAS = f"{OPTIMIZERS},moving_averages"


@pytest.mark.parametrize(
    ("package", "strategy", "counts", "devices", "cases"),
    [
        ("keras", "MultiWorkerMirrored", {"worker": 2}, 0, OFTEN),
        ("tf_keras", "Mirrored", {"chief": 1}, 3, "summed_loss,layers_of_all_rows,widths_of_all_rows"),
        *(
            pytest.param(package, strategy, counts, devices, cases, marks=pytest.mark.slow)
            for package, strategy, counts, devices, cases in (
                ("keras", "Mirrored", {"chief": 1}, 3, LOSSES),
                ("keras", "Mirrored", {"chief": 1}, 3, KERAS_3),
                ("keras", "MultiWorkerMirrored", {"worker": 2}, 0, SOME),
                ("keras", "OneDevice", {"chief": 1}, 0, f"{SOME},{COMBINED}"),
                ("keras", "CentralStorage", {"chief": 1}, 2, ARRAYS),
                ("keras", "ParameterServer", {"chief": 1, "worker": 1, "ps": 1}, 0, ASYNCHRONOUS),
                ("keras", "Mirrored", {"chief": 1}, 3, f"{COMBINED},guide_steps,every_metric_of_keras"),
                ("keras", "MultiWorkerMirrored", {"worker": 2}, 0, f"{COMBINED},guide_steps,every_metric_of_keras"),
                ("keras", "CentralStorage", {"chief": 1}, 2, f"{COMBINED},guide_steps"),
                ("keras", "ParameterServer", {"chief": 1, "worker": 1, "ps": 1}, 0, UNCALLED),
                ("tf_keras", "Mirrored", {"chief": 1}, 3, COMBINED),
                ("tf_keras", "MultiWorkerMirrored", {"worker": 2}, 0, COMBINED),
                ("tf_keras", "CentralStorage", {"chief": 1}, 2, COMBINED),
                ("tf_keras", "ParameterServer", {"chief": 1, "worker": 1, "ps": 1}, 0, UNCALLED),
                ("tf_keras", "Mirrored", {"chief": 1}, 3, LOSSES),
                ("tf_keras", "Mirrored", {"chief": 1}, 3, STEPS),
                ("tf_keras", "MultiWorkerMirrored", {"worker": 2}, 0, SOME),
                ("tf_keras", "OneDevice", {"chief": 1}, 0, f"{SOME},{COMBINED}"),
                ("tf_keras", "CentralStorage", {"chief": 1}, 2, ARRAYS),
                ("tf_keras", "ParameterServer", {"chief": 1, "worker": 1, "ps": 1}, 0, ASYNCHRONOUS),
                ("keras", "OneDevice", {"chief": 1}, 0, "stateful,float8,losses_in_functions"),
                ("tf_keras", "Default", {"chief": 1}, 0, "stateful"),
                ("keras", "Mirrored", {"chief": 1}, 3, TABLES),
                ("keras", "MultiWorkerMirrored", {"worker": 2}, 0, f"{TABLES},float8"),
                ("keras", "CentralStorage", {"chief": 1}, 2, f"{TABLES},float8"),
                ("tf_keras", "Mirrored", {"chief": 1}, 3, TABLES),
                ("tf_keras", "MultiWorkerMirrored", {"worker": 2}, 0, TABLES),
                ("keras", "Mirrored", {"chief": 1}, 3, OTHER_LOSSES),
                ("keras", "MultiWorkerMirrored", {"worker": 2}, 0, OTHER_LOSSES),
                ("keras", "CentralStorage", {"chief": 1}, 2, f"{OTHER_LOSSES},{PLACED},widths_of_all_rows"),
                ("keras", "Mirrored", {"chief": 1}, 2, f"{PLACED},{WITH_ROWS}"),
                ("tf_keras", "Mirrored", {"chief": 1}, 2, f"{PLACED},{WITH_ROWS}"),
                ("tf_keras", "Mirrored", {"chief": 1}, 3, OTHER_LOSSES),
                ("tf_keras", "MultiWorkerMirrored", {"worker": 2}, 0, OTHER_LOSSES),
                ("keras", "Default", {"chief": 1}, 0, f"{IN_ONE_TASK},stop_within_a_validation"),
                ("keras", "OneDevice", {"chief": 1}, 0, IN_ONE_TASK),
                ("keras", "Mirrored", {"chief": 1}, 2, IN_ONE_TASK),
                ("keras", "CentralStorage", {"chief": 1}, 2, f"{IN_ONE_TASK},loss_scale,mixed_precision"),
                ("keras", "MultiWorkerMirrored", {"worker": 2}, 0, f"{IN_ONE_TASK},stop_within_a_validation"),
                (
                    "keras",
                    "ParameterServer",
                    {"chief": 1, "worker": 1, "ps": 1},
                    0,
                    f"{OPTIMIZERS},{AVERAGES},loss_scale,mixed_precision",
                ),
                ("tf_keras", "Default", {"chief": 1}, 0, OF_TF_KERAS),
                ("tf_keras", "Mirrored", {"chief": 1}, 3, OF_TF_KERAS),
                ("tf_keras", "MultiWorkerMirrored", {"worker": 2}, 0, OF_TF_KERAS),
                ("tf_keras", "CentralStorage", {"chief": 1}, 2, OF_TF_KERAS),
                ("tf_keras", "ParameterServer", {"chief": 1, "worker": 1, "ps": 1}, 0, OF_TF_KERAS),
            )
        ),
    ],
)
@pytest.mark.timeout(900)
def test_each_strategy_equals_one_device(
    tmp_path: Path, package: str, strategy: str, counts: dict[str, int], devices: int, cases: str
) -> None:
    check(tmp_path, strategy, counts, devices, cases, package=package, examples=61)


@pytest.mark.parametrize(
    ("package", "shards", "cases"),
    [
        ("keras", 2, "tables"),
        *(
            pytest.param(package, shards, f"tables,{TABLE_OPTIMIZERS}", marks=pytest.mark.slow)
            for package, shards in (("keras", 2), ("keras", 0), ("tf_keras", 0))
        ),
    ],
)
@pytest.mark.timeout(900)
def test_tables_on_parameter_servers_equal_one_device(tmp_path: Path, package: str, shards: int, cases: str) -> None:
    counts = {"chief": 1, "worker": 1, "ps": 2}
    options = {"partitioner": {"fixedShards": shards}} if shards else {}
    check(tmp_path, "ParameterServer", counts, 0, cases, package=package, examples=61, **options)
