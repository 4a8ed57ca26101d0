# SPDX-License-Identifier: Apache-2.0
"""How a loss depends on the rows of its batch: found out with made-up rows, as nothing says so.

The loss is computed of all rows and of two parts of them. A mean of all is the mean of the parts, weighted by their
rows; a sum is their sum.
"""

import threading
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from dtjob_trainer.models.by_rows.slices import Slice, Source

Kind = Literal["mean", "sum", "each", "neither"]
"""`each`: a value for each row, of that row alone."""
Array = npt.NDArray[Any]

PARTS = (5, 11)
"""Rows of the two parts."""
LARGE = (16, 112)
"""Rows of two larger parts. Between them and those of PARTS are all numbers of rows, up to the sum, that a loss may
compare its rows with, as `tf.math.top_k(each, tf.minimum(32, rows))` does."""
MOST_ROWS = 4096
"""A larger number is taken for no number of rows that the loss compares its rows with."""
MOST_THRESHOLDS = 8
"""How many such numbers above the sum of LARGE to try."""
FEW = (2, 3)
"""Rows of the two parts where rows are large."""
MOST_NUMBERS = 4_000_000
"""How many numbers may be drawn at once, but for the rows of FEW."""
MOST_IN_ALL = 150_000_000
"""How many numbers may be drawn in all for a loss, after the first draws."""
FIRST_DRAWS = 12
"""How many draws there are in any case. Limits are counts and no times, so that all tasks find the same."""
TIMES = 2
"""How often to draw each kind of numbers."""
MOST_SPECIAL = 48
"""How many numbers to try that the program may compare with, such as that of padding."""
MOST_IN_ARRAY = 32
"""An array of more numbers is no list of such numbers."""
MOST_SIZES = 16
"""How many sizes of tables to try, of which rows may choose entries."""
_TINY = 1e-12


class Drawn(NamedTuple):
    """Numbers for the sources: of a first part, of a second part and of both."""

    rows: tuple[int, int]
    """Of the parts."""
    first: list[Any]
    second: list[Any]
    both: list[Any]


_known: dict[str, Kind] = {}
_lock = threading.Lock()  # each replica is traced in a thread of its own


def kind_of(part: Slice) -> Kind:
    """How the slice's target depends on the rows of its sources.

    `neither` also where that cannot be found out: where made-up rows raise an error. If memory runs out, the error is
    raised: tasks with more memory would find another kind.
    """
    if all(source.kind == "free" for source in part.sources):
        return "mean"
    digest = part.digest
    with _lock:
        if digest not in _known:
            with tf.init_scope():
                _known[digest] = _tried(part)
        return _known[digest]


def _tried(part: Slice) -> Kind:
    function = part.function()
    try:
        function.get_concrete_function()
    except tf.errors.ResourceExhaustedError:
        raise
    except Exception:
        return "neither"
    kinds: set[Kind] = {"mean", "sum"} if part.target.shape.rank == 0 else {"each"}
    informed = False
    for drawn in _made_up(part):
        found = _kinds_of(function, drawn)
        if found is not None:
            informed, kinds = True, kinds & found
        if not kinds:
            return "neither"
    return kinds.pop() if informed and len(kinds) == 1 else "neither"


def _kinds_of(function: Any, drawn: Drawn) -> set[Kind] | None:
    """What the loss may be, by these parts; None where they tell nothing."""
    try:
        whole = np.asarray(function(*drawn.both), np.float64)
    except tf.errors.ResourceExhaustedError:
        raise
    except Exception:
        return None
    if not np.isfinite(whole).all():
        return None
    try:
        a, b = (np.asarray(function(*each), np.float64) for each in (drawn.first, drawn.second))
    except tf.errors.ResourceExhaustedError:
        raise
    except Exception:
        return set()
    if whole.ndim:
        joined = np.concatenate([a, b])
        return {"each"} if joined.shape == whole.shape and _close(joined, whole) else set()
    if max(abs(a), abs(b), abs(whole)) < _TINY:
        return None
    mean, total = _weighted(drawn.rows, a, b), a + b
    found: set[Kind] = {"mean"} if _close(mean, whole) else set()
    return found | ({"sum"} if _close(total, whole) else set())


def _weighted(rows: tuple[int, int], a: Any, b: Any) -> Any:
    """The mean of `a` and `b`, which are means of so many `rows`."""
    return (rows[0] * a + rows[1] * b) / sum(rows)


def _close(one: Any, other: Any) -> bool:
    size = np.abs(other).max(initial=0.0)
    return bool(np.isfinite(one).all() and np.allclose(one, other, rtol=1e-4, atol=1e-5 * size))


def _made_up(part: Slice) -> Iterator[Drawn]:
    """Numbers for the sources, some times for each way to draw them."""
    random, of_row, spent = np.random.default_rng(0), _numbers_of_row(part), 0
    usual = PARTS if of_row * sum(PARTS) <= MOST_NUMBERS else FEW
    for number, how in enumerate(_draws(part)):
        rows = how.pop("rows", usual)
        spent += of_row * sum(rows)
        if number >= FIRST_DRAWS and spent > MOST_IN_ALL:
            return
        yield _drawn(part.sources, random=random, rows=rows, **how)


def _draws(part: Slice) -> Iterator[dict[str, Any]]:
    """Arguments of `_drawn`. What tells most comes first."""
    constants = part.constants
    exact, beside = _special(part, constants)
    of_rows = [place for place, source in enumerate(part.sources) if source.kind == "rows"]
    of_rows.sort(key=lambda place: bool(part.sources[place].tensor.dtype.is_floating))  # labels have masks most often
    ways: list[dict[str, Any]] = [{"way": way} for way in range(3)]
    yield from (dict(each) for each in ways)
    yield from ({"way": 2, "special": place, "value": value} for value in exact for place in of_rows)
    yield from ({"way": 2, "below": size} for size in _sizes(part, constants))
    yield from ({**each, "rows": rows} for rows in _larger(part, constants) for each in ways)
    yield from (dict(each) for _ in range(1, TIMES) for each in ways)
    yield from ({"way": 2, "special": place, "value": value} for value in beside for place in of_rows)


def _numbers_of_row(part: Slice) -> int:
    """How many numbers one row of all sources has."""
    shapes = [(source.blocks or 1, *source.tensor.shape[1:]) for source in part.sources if source.kind == "rows"]
    return sum(int(np.prod([size or 2 for size in shape])) for shape in shapes)


def _larger(part: Slice, constants: list[Any]) -> list[tuple[int, int]]:
    """Rows of larger parts: LARGE, and parts with less and more rows than numbers that the loss may compare them with.

    Not where a batch of so many rows has too many numbers.
    """
    single = {int(value.flat[0]) for value in constants if value.size == 1 and abs(float(value.flat[0])) <= MOST_ROWS}
    high = sorted(number for number in single if number >= sum(LARGE))[:MOST_THRESHOLDS]
    parts = [LARGE, *((number // 2, number + number // 2) for number in high)]
    return [rows for rows in parts if _numbers_of_row(part) * sum(rows) <= MOST_NUMBERS]


def _sizes(part: Slice, constants: list[Any]) -> list[int]:
    """The sizes of dimensions, below which whole numbers of rows may choose: of classes and of tables."""
    shapes = [value.shape for value in constants] + [tuple(source.tensor.shape) for source in part.sources]
    return sorted({size for shape in shapes for size in shape if size is not None and size > 2})[:MOST_SIZES]


def _special(part: Slice, constants: list[Any]) -> tuple[list[float], list[float]]:
    """The numbers that the program may compare rows with, or that choose another entry of a table than the first; and
    those beside them."""
    numbers = [float(number) for value in constants if value.size <= MOST_IN_ARRAY for number in value.flat]
    tables = [np.flatnonzero(value != value[0]) for value in constants if value.ndim == 1 and value.size]
    numbers += [float(others[0]) for others in tables if others.size]
    known = [number for number in dict.fromkeys(numbers) if abs(number) < 1e9]
    near = dict.fromkeys(number + step for step in (0.0, -1.0, 1.0) for number in known)
    special = [value for value in near if value not in (0.0, 1.0)][:MOST_SPECIAL]
    exact = [value for value in special if value in known]
    if any(_tells_nan(operation) for operation in part.all_operations()):
        exact.append(float("nan"))
    return exact, [value for value in special if value not in known]


def _tells_nan(operation: Any) -> bool:
    """Whether it tells what is no number from others."""
    if operation.type in ("Equal", "NotEqual"):
        return bool(operation.inputs[0].name == operation.inputs[1].name)
    return operation.type in ("IsNan", "IsFinite")


def _drawn(
    sources: list[Source],
    way: int,
    random: Any,
    special: int | None = None,
    value: float | None = None,
    below: int = 2,
    rows: tuple[int, int] = PARTS,
) -> Drawn:
    """Numbers drawn in one `way`. Whole numbers are from 0 on and less than `below`. The parts have so many `rows`.

    - special: the place of a source whose numbers are `value` here and there. Other sources then have fractions: means
      of a few whole numbers are alike too often.
    """
    triples = []
    for place, source in enumerate(sources):
        if source.kind == "free":
            alike = tf.constant(_free(source.tensor, random), source.tensor.dtype)
            triples.append([alike] * 3)
        elif source.kind == "mean":
            a, b = random.uniform(0.5, 3.0, 2)
            means = (a, b, _weighted(rows, a, b))
            triples.append([tf.constant(mean, source.tensor.dtype) for mean in means])
        else:
            is_special, is_other = place == special, special not in (None, place)
            numbers = _rows(source, sum(rows), 0 if is_other else way, random, value if is_special else None, below)
            three = (numbers[: rows[0]], numbers[rows[0] :], numbers)
            triples.append([tf.constant(_one_after_another(each), source.tensor.dtype) for each in three])
    return Drawn(rows, *(list(each) for each in zip(*triples, strict=True)))


def _free(tensor: Any, random: Any) -> Array:
    shape = tuple(size or 2 for size in tensor.shape)
    numbers = random.uniform(0.5, 1.5, shape) if tensor.dtype.is_floating else random.integers(1, 3, shape)
    return np.asarray(numbers).astype(tensor.dtype.as_numpy_dtype)


def _one_after_another(numbers: Array) -> Array:
    """What `_rows` has drawn, with its blocks one after another."""
    return np.concatenate(np.moveaxis(numbers, 1, 0))


def _rows(source: Source, rows: int, way: int, random: Any, value: float | None, below: int) -> Array:
    """Numbers of the shape and type of the tensor, with so many `rows`; its blocks are in the second dimension.

    From row to row they are drawn in another way: means over many numbers, as of the pixels of images, would be alike
    otherwise.
    """
    shape = (rows, source.blocks or 1, *(size or 2 for size in source.tensor.shape[1:]))
    rising = np.linspace(0.0, 1.0, rows).reshape(rows, *(1 for _ in shape[1:]))
    kind = source.tensor.dtype
    if not kind.is_floating or way == 2:
        numbers = np.floor((2 if kind == tf.bool else below) * random.random(shape) ** (0.4 + 2 * rising))
    elif way == 1:
        numbers = random.normal(0.0, 2.0, shape) * (0.5 + rising) + rising
    else:
        numbers = random.uniform(0.05, 0.95, shape) * (0.1 + 0.9 * rising)
    if value is not None and _holds(kind, value):
        numbers = np.where(random.random(shape) < 0.1 + 0.7 * rising, value, numbers)
    return np.asarray(numbers).astype(kind.as_numpy_dtype)


def _holds(kind: Any, value: float) -> bool:
    if kind == tf.bool:
        return False
    if kind.is_floating:
        return True
    return bool(value == value // 1 and kind.min <= value <= kind.max)
