# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.models.by_rows.trials: how losses are seen to depend on the rows of their batch."""

from collections.abc import Callable
from typing import Any

import keras
import pytest
import tensorflow as tf

from dtjob_trainer.models.by_rows import trials
from dtjob_trainer.models.by_rows.slices import Edge, cut_out, key_of

Loss = Callable[[Any, Any], Any]


def seen(loss: Loss, labels: Any = None, outputs: int | tuple[int, ...] = 3, mean: Any = None) -> str:
    """The kind of `loss`, of labels of this spec (float rows by default) and rows of `outputs` numbers, or a shape."""
    found = []

    def step(y: Any, y_pred: Any, before: Any) -> Any:
        value = loss(y, y_pred) if mean is None else mean(y, y_pred, before)
        rows = {key_of(y), key_of(y_pred)}
        found.append(trials.kind_of(cut_out(value, Edge(rows, {key_of(before)}))))
        return value

    shape = [None, *outputs] if isinstance(outputs, tuple) else [None, outputs]
    y = labels or tf.TensorSpec(shape)
    tf.function(step).get_concrete_function(y, tf.TensorSpec(shape), tf.TensorSpec([]))
    return found[0]


def squares(y: Any, y_pred: Any) -> Any:
    return tf.reduce_sum((y - y_pred) ** 2, 1)


def contrastive(y: Any, y_pred: Any) -> Any:
    apart = tf.reduce_sum((y_pred[:, None] - y_pred[None]) ** 2, -1)
    return tf.nn.relu(1.0 - apart)


class Center:
    """Distances to centers, which are variables."""

    def __init__(self) -> None:
        self.centers = tf.Variable(tf.random.normal([2, 3]))

    def __call__(self, y: Any, y_pred: Any) -> Any:
        return tf.reduce_mean((tf.gather(self.centers, y) - y_pred) ** 2)


@pytest.mark.parametrize(
    ("loss", "kind"),
    [
        (lambda y, p: tf.reduce_mean(squares(y, p)), "mean"),
        (lambda y, p: 3.0 * tf.reduce_mean(squares(y, p)) + 2.0, "mean"),
        (lambda y, p: tf.reduce_sum(squares(y, p)) / tf.cast(tf.shape(y)[0], tf.float32), "mean"),
        (lambda y, p: tf.nn.compute_average_loss(squares(y, p)), "mean"),
        (lambda y, p: tf.constant(2.0), "mean"),
        (lambda y, p: tf.reduce_sum(squares(y, p)), "sum"),
        (lambda y, p: tf.reduce_sum(squares(y, p)) / 32, "sum"),
        (lambda y, p: tf.nn.compute_average_loss(squares(y, p), global_batch_size=32), "sum"),
        (squares, "each"),
        (lambda y, p: tf.nn.relu(y - p), "each"),
        (lambda y, p: tf.cond(tf.shape(y)[0] > 9999, lambda: squares(y, p), lambda: 2.0 * squares(y, p)), "each"),
        (lambda y, p: squares(y, p) - tf.reduce_mean(p), "neither"),
        (lambda y, p: squares(y, p)[::-1], "neither"),
        (lambda y, p: tf.sqrt(tf.reduce_mean(squares(y, p))), "neither"),
        (lambda y, p: tf.reduce_max(squares(y, p)), "neither"),
        (lambda y, p: tf.reduce_sum(squares(y, p)) + 1.0, "neither"),
        (lambda y, p: tf.reduce_mean(squares(y, p)) * tf.reduce_mean(y), "neither"),
        (lambda y, p: tf.reduce_sum(y * p) / tf.reduce_sum(y), "neither"),
        (lambda y, p: tf.reduce_mean(contrastive(y, p)), "neither"),
        (lambda y, p: tf.reduce_mean(contrastive(y, p), 1), "neither"),
        (lambda y, p: tf.reduce_mean(squares(y, p) * tf.range(tf.cast(tf.shape(y)[0], tf.float32))), "neither"),
        (lambda y, p: tf.reduce_mean(tf.reshape(p, [-1, 3, 3])), "neither"),  # rows that belong together
        (lambda y, p: tf.reduce_mean(p) / 0.0, "neither"),  # nothing is seen
    ],
)
def test_each_loss_has_its_kind(loss: Loss, kind: str) -> None:
    assert seen(loss) == kind


@pytest.mark.parametrize("most", [5, 18, 32, 100, 120, 256, 1000])
def test_losses_that_compare_the_number_of_rows_are_neither(most: int) -> None:
    def hardest(y: Any, y_pred: Any) -> Any:
        return tf.reduce_mean(tf.math.top_k(squares(y, y_pred), tf.minimum(most, tf.shape(y)[0])).values)

    def beyond(y: Any, y_pred: Any) -> Any:
        mean = tf.reduce_mean(squares(y, y_pred))
        return tf.cond(tf.shape(y)[0] > most, lambda: mean, lambda: 2.0 * mean)

    def scaled(y: Any, y_pred: Any) -> Any:
        each = squares(y, y_pred)
        return tf.cond(tf.cast(tf.shape(y)[0], tf.float32) > float(most), lambda: each, lambda: 2.0 * each)

    assert [seen(loss) for loss in (hardest, beyond, scaled)] == ["neither"] * 3


def test_no_more_numbers_are_drawn_than_memory_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "MOST_NUMBERS", 2 * 3 * sum(trials.LARGE) - 1)
    rows = []
    monkeypatch.setattr(trials, "_kinds_of", lambda function, drawn: rows.append(drawn.rows))
    seen(lambda y, p: 7.0 * tf.reduce_mean(squares(y, p)))
    assert set(rows) == {trials.PARTS}


@pytest.mark.parametrize("padding", [0, -1, -100, 255])
@pytest.mark.parametrize("compare", [tf.not_equal, tf.greater])
def test_masks_are_seen_by_the_numbers_that_the_loss_compares_with(padding: int, compare: Any) -> None:
    def masked(y: Any, y_pred: Any) -> Any:
        mask = tf.cast(compare(y, padding), y_pred.dtype)
        each = tf.reduce_sum(y_pred**2, -1)
        return tf.reduce_sum(each * mask) / tf.reduce_sum(mask)

    assert seen(masked, tf.TensorSpec([None], tf.int64)) == "neither"


def by_classes(y: Any, p: Any) -> Any:
    each = keras.losses.sparse_categorical_crossentropy(y, p, from_logits=True)
    weights = tf.gather(tf.linspace(1.0, 3.0, 21), y)
    return tf.reduce_sum(each * weights) / tf.reduce_sum(weights)


def without_ignored(y: Any, p: Any) -> Any:
    known = tf.not_equal(y, 255)
    each = keras.losses.sparse_categorical_crossentropy(tf.where(known, y, 0), p, from_logits=True)
    return tf.reduce_sum(tf.where(known, each, 0.0)) / tf.reduce_sum(tf.cast(known, tf.float32))


def of_overlap(y: Any, p: Any) -> Any:
    of_class = tf.cast(tf.equal(y, 1), tf.float32)
    return 1.0 - 2.0 * tf.reduce_sum(of_class * p[..., 1]) / tf.reduce_sum(of_class + p[..., 1] ** 2)


@pytest.mark.parametrize("loss", [by_classes, without_ignored, of_overlap])
def test_ratios_of_sums_over_the_pixels_of_images_are_no_means(loss: Loss) -> None:
    assert seen(loss, tf.TensorSpec([None, 96, 96], tf.int32), (96, 96, 21)) == "neither"


@pytest.mark.parametrize(("ignored", "kind"), [(255, "neither"), (None, "mean")])
def test_a_loss_of_large_rows_is_tried_a_few_times_and_its_mask_is_seen(
    monkeypatch: pytest.MonkeyPatch, ignored: int | None, kind: str
) -> None:
    draws, drawn = [], trials._drawn
    monkeypatch.setattr(trials, "MOST_NUMBERS", 10)
    monkeypatch.setattr(trials, "MOST_IN_ALL", 10)
    monkeypatch.setattr(trials, "_drawn", lambda *given, **how: draws.append(how["rows"]) or drawn(*given, **how))

    def loss(y: Any, p: Any) -> Any:
        known = tf.ones_like(y, tf.float32) if ignored is None else tf.cast(tf.not_equal(y, ignored), tf.float32)
        each = keras.losses.sparse_categorical_crossentropy(tf.cast(known, y.dtype) * y, p, from_logits=True)
        return tf.reduce_sum(each * known) / tf.reduce_sum(known)

    assert seen(loss, tf.TensorSpec([None, 4, 4], tf.int32), (4, 4, 21)) == kind
    assert set(draws) == {trials.FEW}
    assert len(draws) <= trials.FIRST_DRAWS


def test_labels_that_are_no_numbers_are_tried() -> None:
    def masked(y: Any, y_pred: Any) -> Any:
        known = tf.math.logical_not(tf.math.is_nan(y))
        each = tf.where(known, (tf.where(known, y, 0.0) - y_pred) ** 2, 0.0)
        return tf.reduce_sum(each) / tf.reduce_sum(tf.cast(known, tf.float32))

    assert seen(masked) == "neither"


def ratio(each: Any, weights: Any) -> Any:
    return tf.reduce_sum(each * weights) / tf.reduce_sum(weights)


def in_function(y: Any, y_pred: Any) -> Any:
    """All of it in a tf.function, which is one operation of the step."""

    def masked(y: Any, y_pred: Any) -> Any:
        return ratio(tf.reduce_sum(y_pred**2, -1), tf.cast(y != -100, y_pred.dtype))

    return tf.function(masked, autograph=False)(y, y_pred)


def in_branch(y: Any, y_pred: Any) -> Any:
    mask = tf.cond(tf.shape(y)[0] > 0, lambda: y != -100, lambda: y == y)
    return ratio(tf.reduce_sum(y_pred**2, -1), tf.cast(mask, y_pred.dtype))


def in_list(y: Any, y_pred: Any) -> Any:
    ignored = tf.reduce_any(y[:, None] == tf.constant([77, -100], y.dtype), -1)
    return ratio(tf.reduce_sum(y_pred**2, -1), tf.cast(~ignored, y_pred.dtype))


def after_many_numbers(y: Any, y_pred: Any) -> Any:
    each = tf.reduce_sum(y_pred**2, -1)
    for number in range(2, 30):
        each += 0.001 * tf.abs(each - 1.5 * number)
    return ratio(each, tf.cast(y != -100, y_pred.dtype))


@pytest.mark.parametrize("masked", [in_function, in_branch, in_list, after_many_numbers])
def test_masks_are_seen_wherever_the_loss_has_its_numbers(masked: Loss) -> None:
    assert seen(masked, tf.TensorSpec([None], tf.int64)) == "neither"


@pytest.mark.parametrize("dtype", [tf.int64, tf.float32])
@pytest.mark.parametrize("table", [[1, 1, 1, 0], [1] * 500 + [9] + [1] * 500])
def test_means_by_weights_of_classes_are_neither(table: list[int], dtype: Any) -> None:
    def weighted(y: Any, y_pred: Any) -> Any:
        weights = tf.gather(tf.constant(table, tf.float32), tf.cast(y, tf.int32))
        return ratio(tf.reduce_sum(y_pred**2, -1), weights)

    assert seen(weighted, tf.TensorSpec([None], dtype)) == "neither"


def test_labels_that_are_not_equal_to_themselves_are_tried() -> None:
    def masked(y: Any, y_pred: Any) -> Any:
        known = tf.equal(y, y)
        return ratio((tf.where(known, y, 0.0) - y_pred) ** 2, tf.cast(known, tf.float32))

    assert seen(masked) == "neither"


def test_a_mean_of_entries_of_a_table_stays_a_mean() -> None:
    def weighted(y: Any, y_pred: Any) -> Any:
        weights = tf.gather(tf.constant([1.0, 1.0, 5.0, 7.0]), tf.cast(y, tf.int32))
        return tf.reduce_mean(tf.reduce_sum(y_pred**2, -1) * weights)

    assert seen(weighted, tf.TensorSpec([None], tf.int64)) == "mean"


def test_labels_choose_among_variables() -> None:
    assert seen(Center(), tf.TensorSpec([None], tf.int32)) == "mean"


@pytest.mark.parametrize(
    ("loss", "kind"),
    [
        (lambda y, p, before: 2.0 * before + tf.reduce_mean(p), "mean"),
        (lambda y, p, before: tf.math.log(before), "neither"),
        (lambda y, p, before: before + tf.reduce_sum(p), "neither"),
        (lambda y, p, before: before, "mean"),
    ],
)
def test_losses_of_a_loss_that_is_a_mean(loss: Any, kind: str) -> None:
    assert seen(squares, mean=loss) == kind


BY_ROWS = [
    kind
    for kind in vars(keras.losses).values()
    if isinstance(kind, type) and kind not in (keras.losses.Loss, keras.losses.CTC)
]


@pytest.mark.parametrize("kind", BY_ROWS, ids=lambda kind: kind.__name__)
def test_losses_of_keras_have_a_value_for_each_row(kind: Any) -> None:
    """But for those that by_rows.objects knows to be others."""
    from dtjob_trainer.models.by_rows.objects import _UNLIKE

    of_classes = kind.__name__.startswith("Sparse") or kind.__name__ in (
        "Circle",
        "CategoricalGeneralizedCrossEntropy",
    )
    labels = tf.TensorSpec([None], tf.int32) if of_classes else None
    assert seen(kind(reduction=None), labels) == ("neither" if kind.__name__ in _UNLIKE else "each")


def test_a_trial_that_runs_out_of_memory_raises() -> None:
    def loss(y: Any, y_pred: Any) -> Any:
        terabytes = tf.tile(y_pred, tf.constant([2**36, 1], tf.int64))
        return tf.reduce_mean(squares(y, y_pred)) + tf.reduce_max(terabytes)

    with pytest.raises(tf.errors.ResourceExhaustedError):
        seen(loss)
