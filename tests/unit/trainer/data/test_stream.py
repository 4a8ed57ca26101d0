# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.data.stream: iterators at their end are freed in a thread that may be held up; the caller is not."""

import threading
import weakref

import tensorflow as tf

from dtjob_trainer.data import stream
from dtjob_trainer.data.batches import Place, Wanted
from dtjob_trainer.data.dataset import DatasetSource
from dtjob_trainer.data.stream import Stream, at_end, flat

SOON = 60.0
"""Seconds until what happens beside the test must have happened."""


class Slow:
    """Something whose end waits."""

    def __init__(self) -> None:
        self.may_end, self.ended = threading.Event(), threading.Event()

    def __del__(self) -> None:
        self.may_end.wait(SOON)
        self.ended.set()


def test_the_caller_waits_for_no_end() -> None:
    slow, next_one = Slow(), Slow()
    events = [(each.may_end, each.ended) for each in (slow, next_one)]
    held, further = [slow], [next_one]
    del slow, next_one
    stream.free(held)
    stream.free(further)
    assert not events[0][1].is_set()
    for may_end, ended in events:
        may_end.set()
        assert ended.wait(SOON)


def test_a_stream_at_its_end_holds_no_iterator() -> None:
    source = DatasetSource(tf.data.Dataset.range(6).batch(3), Place(0, 1, 1), Wanted())
    one, freed = Stream(source, 0, 0), threading.Event()
    weakref.finalize(one._iterator, freed.set)
    iterator = tf.nest.pack_sequence_as(tf.data.IteratorSpec(source.element_spec), [one.iterator], True)
    for step in (1, 2):
        ahead = iterator.get_next_as_optional()
        one.advance(ahead, 1, there=bool(ahead.has_value()), waited=0.25)
        assert one.more == (step == 1)
    del iterator
    assert one.iterator is None
    assert source.waited > 0.5
    assert freed.wait(SOON)


def test_a_step_may_take_the_element_ahead_and_leave_the_next_one_to_be_read_later() -> None:
    one = Stream(DatasetSource(tf.data.Dataset.range(6).batch(3), Place(0, 1, 1), Wanted()), 0, 0)
    nothing = tf.nest.pack_sequence_as(tf.data.IteratorSpec(one._source.element_spec), [flat(at_end())], True)
    assert not nothing.get_next_as_optional().has_value()
    ahead, there = one.read()
    assert (there, ahead.get_value().numpy().tolist()) == (True, [3, 4, 5])


def test_passes_from_the_begin_share_one_dataset() -> None:
    """TensorFlow prepares a Dataset when it is first iterated; a new one of each pass costs that again."""
    source = DatasetSource(tf.data.Dataset.range(6).batch(3), Place(0, 1, 1), Wanted())
    assert source.elements(1, 0) is source.elements(0, 0)
    assert [part.tolist() for part in source.elements(2, 1).as_numpy_iterator()] == [[3, 4, 5]]
