# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.models.metric_states: metrics' results by one traced function, with the bits of each read by itself."""

import importlib
import inspect
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from dtjob_trainer.models.compiled import number
from dtjob_trainer.models.metric_states import Results

ARGUMENTS: dict[str, dict[str, Any]] = {
    "FBetaScore": {"beta": 0.7},
    "IoU": {"num_classes": 2, "target_class_ids": [0, 1]},
    "BinaryIoU": {},
    "MeanIoU": {"num_classes": 2},
    "OneHotIoU": {"num_classes": 3, "target_class_ids": [0, 2]},
    "OneHotMeanIoU": {"num_classes": 3},
    "PrecisionAtRecall": {"recall": 0.3},
    "RecallAtPrecision": {"precision": 0.3},
    "SensitivityAtSpecificity": {"specificity": 0.3},
    "SpecificityAtSensitivity": {"sensitivity": 0.3},
    "MeanMetricWrapper": {"fn": lambda y_true, y_pred: (y_true - y_pred) ** 2},
    "AUC": {"curve": "PR", "num_thresholds": 23},
}
OF_CLASSES = ("SparseCategoricalCrossentropy", "SparseCategoricalAccuracy", "SparseTopKCategoricalAccuracy")
ONE_OF_TWO = ("BinaryIoU", "IoU", "MeanIoU")


def metrics_of(package: Any) -> list[Any]:
    base, found = package.metrics.Metric, inspect.getmembers(package.metrics, inspect.isclass)
    kinds = {kind.__name__: kind for _, kind in found if issubclass(kind, base) and kind is not base}
    return [kind(**_arguments(kind)) for kind in kinds.values()]


def _arguments(kind: Any) -> dict[str, Any]:
    name = kind.__name__
    if name == "MeanRelativeError":
        return {"normalizer": [1.0, 2.0, 3.0]}
    return ARGUMENTS.get(name, {})


def update(metric: Any, random: Any) -> None:
    """Count seven made-up rows of three classes, or what else it takes."""
    name, rows = type(metric).__name__, random.uniform(0.01, 0.99, (7, 3)).astype("float32")
    if name in ("Mean", "Sum"):
        metric.update_state(rows)
    elif name == "MeanTensor":
        metric.update_state(rows[0])
    elif name in OF_CLASSES:
        metric.update_state(random.integers(0, 3, (7, 1)), rows)
    elif name in ONE_OF_TWO:
        metric.update_state(random.integers(0, 2, (7,)), random.integers(0, 2, (7,)))
    else:
        metric.update_state(np.eye(3, dtype="float32")[random.integers(0, 3, 7)], rows)


@pytest.mark.parametrize("package", ["keras", "tf_keras"])
def test_each_metric_of_the_package_has_the_bits_that_it_has_by_itself(package: str) -> None:
    metrics, results = metrics_of(importlib.import_module(package)), Results(package)
    assert len(metrics) > 30
    random = np.random.default_rng(5)
    for _ in range(3):
        for metric in metrics:
            update(metric, random)
        alone = [number(metric.result()) for metric in metrics]
        with results.known(metrics):
            read = [number(metric.result()) for metric in metrics]
        assert dict(zip(metrics, read, strict=True)) == dict(zip(metrics, alone, strict=True))


def test_each_metric_has_the_bits_of_the_states_of_all_replicas() -> None:
    """As if it had counted what another one has."""
    mine, others, results = metrics_of(keras)[::4], metrics_of(keras)[::4], Results("keras")
    random = np.random.default_rng(6)
    for _ in range(3):
        for metric, other in zip(mine, others, strict=True):
            for counts in (metric, other, other):
                update(counts, random)
        variables = [[v for metric in some for v in metric.variables] for some in (mine, others)]
        states = [(v, tf.constant(other.value)) for v, other in zip(*variables, strict=True)]
        with results.known(mine, states):
            read = [number(metric.result()) for metric in mine]
        assert read == [number(metric.result()) for metric in others]


def test_copies_of_replicas_are_read_as_they_are_now() -> None:
    replicas, results = [tf.Variable([1.0, 2.0]), tf.Variable([3.0, 4.0])], Results("keras")
    number_of_steps = tf.Variable(2**40, dtype=tf.int64)
    for added in (0.0, 1.5):
        replicas[1].assign_add([added, added])
        (first, second), (steps,) = results.copies([replicas, [number_of_steps]])
        assert (first.tolist(), second.tolist(), steps) == ([1, 2], [3 + added, 4 + added], 2**40)


def test_a_traced_result_has_the_bits_of_the_untraced_division() -> None:
    """TensorFlow makes a product with 1 / 3 of a division by 3 where it may."""

    class Third(keras.metrics.Mean):
        def result(self) -> Any:
            return super().result() / 3.0

    Third.__module__ = keras.metrics.Mean.__module__
    third, results, found = Third(), Results("keras"), []
    for value in np.random.default_rng(0).uniform(size=50):
        third.update_state(value)
        with results.known([third]):
            read = number(third.result())
        found.append((read, number(third.result())))
    assert [read for read, _ in found] == [alone for _, alone in found]


def test_a_metric_of_the_program_is_asked_each_time_and_others_are_as_before_afterwards() -> None:
    """What it counts in Python would be what it was as the function was traced."""

    class Asked(keras.metrics.Metric):
        times = 0

        def result(self) -> int:
            self.times += 1
            return self.times

    asked, mean, results = Asked(), keras.metrics.Mean(), Results("keras")
    for value in (1, 2, 3):
        mean.update_state(value)
        with results.known([asked, mean]):
            mean.update_state(9)
            assert (asked.result(), float(mean.result())) == (value, (value + 1) / 2)
        mean.reset_state()
        mean.update_state([*range(1, value + 1)])
        assert float(mean.result()) == (value + 1) / 2
    assert asked.times == 3
