# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.passes.epochs: which batches make which epoch, as Keras has it, and the way back into one."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("numpy")
batches = pytest.importorskip("dtjob_trainer.data.batches")
epochs_of = pytest.importorskip("dtjob_trainer.passes.epochs")
errors = pytest.importorskip("dtjob_trainer.errors")


class Numbers(batches.Source):  # type: ignore[misc,name-defined]
    """Batches (pass, step) of passes of these lengths, the last of which is that of all further ones."""

    may_be_empty, exact = False, True

    def __init__(self, *lengths: int, known: bool = False, once: bool = False, batch: int | None = None) -> None:
        self.lengths, self.once, self.batch = lengths, once, batch
        self.steps = lengths[0] if known else None

    def epoch(self, number: int, first_step: int) -> Iterator[Any]:
        length = 0 if self.once and number else self.lengths[min(number, len(self.lengths) - 1)]
        yield from (batches.Batch((number, step), 1, 1) for step in range(first_step, length))

    def input_spec(self) -> tuple[Any, ...]:
        raise NotImplementedError


class Alone:
    """A group of one task."""

    tasks = 1


def course(
    source: Numbers, *, epochs: int, steps: int | None = None, when_out: str = "end the epoch", first: int = 0
) -> Any:
    told: list[str] = []
    made = epochs_of.Epochs(
        source, Alone(), steps=steps, epochs=epochs, when_out=when_out, tell=told.append, first=first
    )
    made.told = told
    return made


def run(made: Any, step: int = 0, until: int | None = None, most: int = 1) -> tuple[list[list[tuple[int, int]]], int]:
    """The batches of each epoch from `step` on, up to `until` steps, and the step after them."""
    found = []
    while made.go_on:
        found.append([])
        while step != until and (group := made.take(step, most)):
            found[-1] += [batch.inputs for batch in group]
            step += len(group)
        if step == until:
            break
        made.end(step)
    return found, step


@pytest.mark.parametrize(
    ("lengths", "steps", "epochs", "when_out", "expected"),
    [
        ((15,), None, 3, "end the epoch", [15, 15, 15]),
        ((5, 9, 3, 12), None, 4, "end the epoch", [5, 9, 3, 12]),
        ((15,), 7, 6, "end the epoch", [7, 7, 1, 7, 7, 1]),
        ((15,), 15, 3, "end the epoch", [15, 15, 15]),
        ((15,), 20, 2, "end the epoch", [15, 15]),
        ((15,), 7, 4, "go on", [7, 7, 7, 7]),
        ((15,), 7, 6, "stop", [7, 7, 1]),
        ((14,), 7, 6, "stop", [7, 7]),
    ],
)
@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("most", [1, 4])
def test_epochs_have_the_steps_that_they_have_in_keras(
    lengths: tuple[int, ...], steps: int | None, epochs: int, when_out: str, expected: list[int], known: bool, most: int
) -> None:
    if known and len(lengths) > 1:
        return
    made = course(Numbers(*lengths, known=known), epochs=epochs, steps=steps, when_out=when_out)
    total = made.total(0)
    found, last = run(made, most=most)
    assert [len(epoch) for epoch in found] == expected
    assert (total == sum(expected)) or not known
    assert made.total(last) == last == sum(expected)
    assert len(made.told) == (sum(expected) < epochs * (steps or 0) and when_out != "go on")


@pytest.mark.parametrize(("first", "most"), [(0, 1), (0, 3), (3, 1)])
@pytest.mark.parametrize(
    ("source", "steps", "when_out"),
    [
        (Numbers(4), None, "end the epoch"),
        (Numbers(4, known=True), None, "end the epoch"),
        (Numbers(4, known=True), 3, "end the epoch"),
        (Numbers(4), 3, "end the epoch"),
        (Numbers(4), 2, "end the epoch"),
        (Numbers(4), 3, "go on"),
        (Numbers(9), 3, "stop"),
        (Numbers(10, once=True), 3, "end the epoch"),
        (Numbers(10, once=True), None, "end the epoch"),
    ],
)
def test_a_run_goes_on_where_its_checkpoint_is(
    source: Numbers, steps: int | None, when_out: str, first: int, most: int
) -> None:
    """From every step, also an epoch's last one, whose end is behind us or before us.

    Epochs have their numbers, passes orders of their own, and a restart that asks for others changes nothing.
    """
    if source.once and first:
        return
    made = course(source, epochs=first + 4, steps=steps, when_out=when_out, first=first)
    assert list(made.numbers) == []
    whole, last = run(made)
    assert list(made.numbers) == list(range(first, first + len(whole)))
    assert whole[0][0] == (first, 0)
    for stop in range(1, last):
        before = course(source, epochs=first + 4, steps=steps, when_out=when_out, first=first)
        begin, _ = run(before, until=stop)
        again = course(source, epochs=first + 4, steps=steps, when_out=when_out, first=min(first, 1))
        again.take_up(before.position(stop), stop)
        assert list(again.numbers) == list(before.numbers)
        rest, _ = run(again, stop, most=most)
        assert [*begin[:-1], begin[-1] + rest[0], *rest[1:]] == whole


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize(
    ("lengths", "steps", "when_out", "expected"),
    [
        ((4,), None, "end the epoch", 12),
        ((4,), 3, "end the epoch", 7),
        ((5,), 4, "go on", 12),
        ((9,), 4, "stop", 9),
    ],
)
def test_a_resumed_run_has_as_many_steps(
    lengths: tuple[int, ...], steps: int | None, when_out: str, expected: int, known: bool
) -> None:
    """Also where its checkpoint is of an epoch's last step, before the validation."""
    for stop in range(lengths[0] + 1, expected):  # the first pass has shown the length
        first = course(Numbers(*lengths, known=known), epochs=3, steps=steps, when_out=when_out)
        run(first, until=stop)
        first.ends(stop)  # as the loop asks before it saves
        again = course(Numbers(*lengths, known=known), epochs=3, steps=steps, when_out=when_out)
        again.take_up(first.position(stop), stop)
        assert again.total(stop) == expected


def position_after(made: Any, until: int) -> Any:
    """Where in the data a run is from its beginning until so many steps are done."""
    run(made, until=until)
    return made.position(until)


@pytest.mark.parametrize(
    ("length", "batch", "until", "now", "cut", "ended", "rest"),
    [
        (16, 16, 27, (8, 32), False, 1, [(1, step) for step in range(5, 8)]),  # 176 examples: within the sixth batch
        (8, 32, 21, (16, 16), False, 2, [(2, step) for step in range(10, 16)]),
        (8, 32, 16, (16, 16), False, 1, []),
        (8, 32, 3, (3, 96), False, 0, [(0, 1), (0, 2)]),
        (4, 16, 6, (6, 16), False, 1, [(1, step) for step in range(2, 6)]),  # more of the same
        (4, 16, 7, (2, 16), False, 1, []),  # less than was trained on
        (16, 16, 27, (8, 32), True, 1, [(1, step) for step in range(8)]),
        (16, None, 27, (8, 32), False, 1, [(1, step) for step in range(8)]),
        (16, 16, 27, (8, None), False, 1, [(1, step) for step in range(8)]),
    ],
)
def test_other_batches_go_on_at_the_same_example_of_the_same_epoch(
    length: int,
    batch: int | None,
    until: int,
    now: tuple[int, int | None],
    cut: bool,
    ended: int,
    rest: list[tuple[int, int]],
) -> None:
    """Whatever their number: no example is left out, no epoch is lost, and none is told of twice."""
    position = position_after(course(Numbers(length, known=True, batch=batch), epochs=4), until)
    source = Numbers(now[0], known=True, batch=now[1])
    source.cut_by_batch = cut
    made = course(source, epochs=4)
    assert not made.same(position)
    made.take_up(position, until)
    assert made.ended == ended
    total = made.total(until)
    found, end = run(made, until)
    assert found[0] == rest
    assert found[1:] == [[(epoch, step) for step in range(now[0])] for epoch in range(ended + 1, 4)]
    assert total == made.total(end) == end
    (warning,) = made.told
    assert f"epoch {ended + 1} " in warning
    assert ("begins anew" in warning) == (cut or None in (batch, now[1]))


@pytest.mark.parametrize(
    ("length", "steps", "until", "rest"),
    [
        (16, None, 3, [(0, step) for step in range(6, 16)]),
        (10**6, 5, 7, [(0, step) for step in range(14, 15)]),  # 4 of the epoch's 5, as there are no more
    ],
)
def test_smaller_batches_of_unknown_number_go_on_at_the_same_example(
    length: int, steps: int | None, until: int, rest: list[tuple[int, int]]
) -> None:
    """Of them there may be more than the run has had steps."""
    position = position_after(course(Numbers(length // 2, batch=32), epochs=4, steps=steps), until)
    made = course(Numbers(length, batch=16), epochs=4, steps=steps)
    made.take_up(position, until)
    found, _ = run(made, until, until=until + len(rest))
    assert found[0] == rest
    (warning,) = made.told
    assert "goes on where it was" in warning


def test_epochs_of_other_lengths_go_on_in_the_one_that_ran() -> None:
    position = position_after(course(Numbers(20, known=True, batch=16), epochs=4, steps=5), 7)
    made = course(Numbers(20, known=True, batch=16), epochs=4, steps=4)
    made.take_up(position, 7)
    assert (made.ended, made.began, made.told) == (1, 5, [])
    assert [len(epoch) for epoch in run(made, 7)[0]] == [2, 4, 4]
    larger = course(Numbers(10, known=True, batch=32), epochs=4, steps=5)
    larger.take_up(position, 7)
    assert [len(epoch) for epoch in run(larger, 7)[0]] == [4, 3, 5]


def test_an_epoch_whose_steps_are_done_is_not_trained_again_in_other_batches() -> None:
    before = course(Numbers(16, known=True, batch=16), epochs=2)
    run(before, until=16)
    before.take(16, 1)
    made = course(Numbers(8, known=True, batch=32), epochs=2)
    made.take_up(before.position(16), 16, steps_done=True)
    assert (made.ended, made.total(16)) == (0, 24)
    made.end(16)
    assert run(made, 16)[0] == [[(1, step) for step in range(8)]]


def test_the_first_epoch_finds_the_length() -> None:
    made = course(Numbers(4), epochs=3)
    assert made.total(0) is made.total(3) is made.steps_per_epoch is None
    while made.take(step := getattr(made, "at", 0), 1):
        made.at = step + 1
    made.end(4)
    assert made.total(4) == 12
    assert made.steps_per_epoch == 4


def test_an_epoch_ends_where_no_batch_follows() -> None:
    made = course(Numbers(4), epochs=3, steps=3)
    ends = []
    for step in range(4):
        if step == 3:
            made.end(3)
        made.take(step, 1)
        ends.append(made.ends(step + 1))
    assert ends == [False, False, True, True]


def test_a_restart_with_other_data_keeps_the_numbers_of_epochs() -> None:
    position = position_after(course(Numbers(4, known=True, batch=6), epochs=6, first=3), 6)
    made = course(Numbers(3, known=True, batch=8), epochs=6)
    made.take_up(position, 6)
    assert (made.ended, made.began, list(made.numbers)) == (4, 5, [3])
    assert run(made, 6)[0][0] == [(4, 1), (4, 2)]


def test_the_data_is_informed_of_a_changed_number_of_tasks_within_an_epoch() -> None:
    source = Numbers(10, known=True)
    told: list[Any] = []
    source.shared = told.append  # type: ignore[method-assign]
    made = course(source, epochs=3)
    made.history = ((0, 3), (14, 2))
    position = replace(made.position(14), ended=1, began=10, passes=1, pass_began=10)
    made.take_up(position, 14)
    assert [batch.inputs for batch in made.take(14, 2)] == [(1, 4), (1, 5)]
    assert told == [((0, 3), (4, 2))]
    assert made.told == []
    source.own_shares = True
    again = course(source, epochs=3)
    again.history = made.history
    again.take_up(position, 14)
    again.take(14, 1)
    (warning,) = again.told
    assert "take them from context.shuffled(n) or context.files(counts)" in warning
    whole = course(source, epochs=3)
    whole.history = ((0, 3), (10, 2))
    whole.take_up(position, 14)
    whole.take(14, 1)
    assert whole.told == []
