# SPDX-License-Identifier: Apache-2.0
"""One step of training or evaluation under a synchronous strategy, each traced once."""

import contextlib
import math
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Sequence
from statistics import median
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from dtjob_trainer.data import elements
from dtjob_trainer.data.batches import Batch, Source
from dtjob_trainer.data.stream import Portion, Stream, at_end, flat
from dtjob_trainer.engines.engine import CALL_SECONDS, MEASUREMENTS, Engine, Phase, Work
from dtjob_trainer.errors import StepError
from dtjob_trainer.frameworks import tensorflow
from dtjob_trainer.models.compiled import TrainedModel
from dtjob_trainer.placement.shard import Shard
from dtjob_trainer.strategies.agreement import Agreement, digest
from dtjob_trainer.strategies.collective import Group

OTHER_STEP = (
    "the step of task {task} exchanges other values than that of {chief}; make the same model, loss and train_step in "
    "every task, and let none of them depend on the task or its machine"
)


class SynchronousEngine(Engine):
    """Runs steps of a built model on every replica of a synchronous strategy (or in one process)."""

    on_tpu = False
    """Whether the replicas are those of a TPU, of which each has rows."""

    each_has_all = False
    """Whether each replica has all rows of a batch."""

    def __init__(self, trained: TrainedModel, group: Group, watched: Collection[Phase] = ()) -> None:
        super().__init__(trained, group, watched)
        self._one_at_a_time = any(self._own_step.values())
        """What a step of the model's own returns is of one batch, and not known before it is traced."""
        self.steps_per_call = trained.steps_per_call
        self._concrete: dict[tuple[Phase, int], Any] = {}
        self._rows: dict[int, int] = {}
        """The static numbers of rows, by source. The number is open for a source that is not here."""
        self._apart: dict[int, bool] = {}  # by a function that runs several steps in one call, whether it must not
        asynchronous = not tf.config.experimental.get_synchronous_execution()  # which a program may want on CPUs, too
        self.overlaps = self.on_tpu or asynchronous or bool(tf.config.get_visible_devices("GPU"))
        self._measured: deque[float] = deque(maxlen=MEASUREMENTS)  # the seconds of a step
        self._busy, self._counted = 0.0, 0
        self._at_end: Any = None

    def busy(self, source: Source, step: int) -> float | None:
        """For how many seconds devices have worked, judged by the steps that were measured.

        None before there are enough, and where steps read the data and nobody may look at the clock.
        """
        if self.streams(source) and tensorflow.is_deterministic():
            return None
        if not self.overlaps:
            return 0.0
        if len(self._measured) < MEASUREMENTS:
            return None
        self._busy += (step - self._counted) * median(self._measured)
        self._counted = step
        return self._busy

    def traced(self, source: Source) -> Any:
        """The traced function of training steps on batches of `source`."""
        return self._traced_function("train", source)

    def streams(self, source: Source) -> bool:
        """Unless tasks must agree at each batch on whether there is one."""
        agreed = self.group.tasks == 1 or source.steps is not None
        return source.element_spec is not None and agreed and not self._one_at_a_time

    def most_in_one_call(self, phase: Phase, source: Source, wanted: int) -> int:
        """All, where a call takes none of the batches from Python but the numbers of their rows."""
        many = self.streams(source) or (source.numbered and not self._one_by_one(phase, source))
        return max(wanted, self.steps_per_call) if many else self.steps_per_call

    def updates(self) -> int:
        """What the optimizer counts. Waits for the steps so far."""
        return 0 if self._own_step["train"] else int(tf.convert_to_tensor(self.trained.model.optimizer.iterations))

    def _run(self, phase: Phase, source: Source, work: Work) -> tuple[Any, int]:
        function = self._traced_function(phase, source)
        measures = phase == "train" and self.measures_next
        self.measures_next &= not measures
        if isinstance(work, Portion):
            return self._run_stream(function, work, measures)
        if measures:
            return self._measure(lambda: (self._run_batches(function, phase, source, work), len(work)))
        return self._run_batches(function, phase, source, work), len(work)

    def _run_batches(self, function: Any, phase: Phase, source: Source, work: Sequence[Batch]) -> Any:
        result = None
        if self._one_by_one(phase, source):
            for batch in work:
                result = function(batch.inputs, tf.constant(batch.count), tf.constant(batch.total))
            return result
        for group in [[batch] for batch in work] if self._must_be_apart(function) else [work]:
            vectors = [batch.inputs[0] for batch in group]
            rows = [len(vector) for vector in vectors]
            filled = np.zeros((len(rows), max(rows)), np.int64)
            for number, vector in enumerate(vectors):
                filled[number, : len(vector)] = vector
            counts, totals = [batch.count for batch in group], [batch.total for batch in group]
            result = function(tf.constant(filled), tf.constant(rows), tf.constant(counts), tf.constant(totals))
        return result

    def _run_stream(self, function: Any, portion: Portion, measures: bool) -> tuple[Any, int]:
        stream, apart = portion.stream, self._must_be_apart(function)
        result, done = self._measure_ahead(function, stream) if measures else (None, 0)
        # tasks that take steps together must take equally many, and callbacks are told of those of steps_per_execution
        cut_short = self.group.tasks == 1 and not apart and portion.most > self.steps_per_call
        while done < portion.most and stream.more:
            most = 1 if apart else portion.most - done
            numbers = tf.constant([stream.step, most, CALL_SECONDS if cut_short else math.inf], tf.float64)
            found, result, ahead = function(stream.iterator, stream.ahead, numbers)
            steps, there, waited = found.numpy().tolist()
            stream.advance(ahead, int(steps), there=bool(there), waited=waited)
            done += int(steps)
            if not apart:
                break
        return result, done

    def _measure_ahead(self, function: Any, stream: Stream) -> tuple[Any, int]:
        """Measure a step on the batch that is ahead. It reads none itself, which might take longer than the step."""
        self._at_end = self._at_end or at_end()
        arguments = flat(self._at_end), stream.ahead, tf.constant([stream.step, 1, math.inf], tf.float64)
        found: list[Any] = []

        def step() -> tuple[Any, int]:
            found[:] = function(*arguments)
            return found[1], 1

        measured = self._measure(step)
        ahead, there = stream.read()
        stream.advance(flat(ahead), 1, there=there, waited=float(found[0][2]))
        return measured

    def _measure(self, steps: Callable[[], tuple[Any, int]]) -> tuple[Any, int]:
        """What `steps` returns, with its number of steps; notes how long devices take for a step. Collective."""
        self._rest(self._last.get("train"))
        if self.group.tasks > 1:  # else a task would measure how long another one reads its batch
            self.group.sum(np.zeros(1))
        began = time.monotonic()
        result, done = steps()
        if self._rest(result):
            self._measured.append((time.monotonic() - began) / done)
        return result, done

    def _rest(self, result: Any) -> bool:
        """Wait until devices have nothing to do; `result` is that of the last step. Whether this can be known."""
        on_gpu = bool(tf.config.get_visible_devices("GPU"))
        for number in range(self.group.local if on_gpu else 0):
            with tf.device(f"GPU:{number}"):
                tf.raw_ops.SyncDevice()
        parts = tf.nest.flatten(result)
        for part in parts[:1]:
            np.asarray(part)
        return on_gpu or bool(parts)

    def _traced_function(self, phase: Phase, source: Source) -> Any:
        """The function of such steps as it is traced. Called so, Python does not look for a trace that fits the
        arguments, which takes as long as a small step."""
        key = (phase, id(source))
        if key not in self._concrete:
            self._concrete[key] = self._trace(phase, source)
            see_alike(self.group, self._concrete[key].graph)
        return self._concrete[key]

    def _trace(self, phase: Phase, source: Source) -> Any:
        """The function as it is traced for batches of any size. If that fails in one replica, for the size of all
        batches, which a model may ask for as `x.shape[0]`."""
        try:
            return self._function(phase, source).get_concrete_function()
        except Exception as error:
            if self.group.replicas > 1 or self.on_tpu or source.rows is None or id(source) in self._rows:
                raise
            self._rows[id(source)] = source.rows
            del self._functions[phase, id(source)]
            try:
                return self._function(phase, source).get_concrete_function()
            except Exception:  # then the size was not the reason
                raise error from None

    def _must_be_apart(self, function: Any) -> bool:
        """Whether each step must be a call of its own, since replicas exchange what has no fixed shape."""
        if self.group.replicas == 1:
            return False
        if id(function) not in self._apart:
            self._apart[id(function)] = have_open_shapes(function.graph)
        return self._apart[id(function)]

    def _make_function(self, phase: Phase, body: Callable[..., Any], source: Source) -> Any:
        # One trace with an open batch dimension: graphs for other shapes differ in their last bits, and which of
        # them a restarted run traces first depends on the step at which it resumes.
        step, number, numbers = self._step(body, source), tf.TensorSpec([], tf.int32), tf.TensorSpec([None], tf.int32)
        if self.streams(source):
            # plain tensors: to match an iterator with its spec takes Python as long as a small step
            signature = [tf.TensorSpec([], tf.resource), tf.TensorSpec([], tf.variant), tf.TensorSpec([3], tf.float64)]
            return tf.function(_of_stream(step, source, self._on_host), autograph=False, input_signature=signature)
        if self._one_by_one(phase, source):
            return tf.function(step, autograph=self.custom, input_signature=[source.input_spec(), number, number])
        signature = [tf.TensorSpec([None, None], tf.int64), numbers, numbers, numbers]
        return tf.function(_of_stacked(step, self._on_host), autograph=False, input_signature=signature)

    def _step(self, body: Callable[..., Any], source: Source) -> Callable[[Any, Any, Any], Any]:
        """In the graph: one step of all replicas of this task, of its inputs, how many count, and the batch's size."""
        may_be_empty = source.may_be_empty and not self.on_tpu
        rows = self._rows.get(id(source))

        def on_examples(examples: Any, total: Any, *decoded: Any) -> Any:
            whole = (True,) * len(tf.nest.flatten(decoded)) if self.each_has_all else source.whole
            return body(Shard(self.group.replicas, examples, total, may_be_empty, whole), *decoded)

        # data stays outside: XLA takes no strings, and would take in all arrays from which rows are gathered
        compute = tf.function(on_examples, autograph=False, jit_compile=True) if self.trained.by_xla else on_examples

        def step(inputs: Any, count: Any, total: Any) -> Any:
            def replica(mine: Any, examples: Any) -> Any:
                return compute(examples, total, *elements.with_rows(source.decode(*mine), rows))

            if source.distributed:
                each = self.group.strategy.run(replica, args=(inputs, count))
            else:
                each = self._on_replicas(replica, inputs, count, source.whole)
            results = self.group.strategy.experimental_local_results(each)
            return keras.tree.map_structure(lambda *parts: tf.add_n(list(parts)), *results)

        return step

    def _one_by_one(self, phase: Phase, source: Source) -> bool:
        """Whether each step that Python gives its batch is a call of its own. Row numbers of several batches are given
        in one call, unless callbacks see each step."""
        seen = phase in self.watched and self.steps_per_call == 1
        return self._one_at_a_time or bool(source.whole) or not source.numbered or self.on_tpu or seen

    def _on_replicas(self, replica: Callable[..., Any], inputs: Any, count: Any, whole: tuple[bool, ...]) -> Any:
        """Run `replica` of each replica's rows and how many of them count."""
        return self.group.strategy.run(lambda: replica(*self._share_of_replica(inputs, count, whole)))

    def _share_of_replica(self, inputs: Any, count: Any, whole: tuple[bool, ...]) -> tuple[Any, Any]:
        """This replica's rows of the task's `count`, at least one, and how many of them count."""
        if self.group.local == 1:
            return inputs, count
        context = tf.distribute.get_replica_context()
        with self._on_host():
            replica = context.replica_id_in_sync_group - self.group.first_replica
            low = replica * count // self.group.local
            high = (replica + 1) * count // self.group.local
            begin = tf.minimum(low, tf.maximum(count, 1) - 1)
            end = tf.maximum(high, begin + 1)
            return elements.share_of(inputs, begin, end, whole), high - low

    def _on_host(self) -> contextlib.AbstractContextManager[Any]:
        """Have what follows done in the host's memory, where data is: a GPU would be given all of it for a part, and
        waited for at each step. A TPU has no host within its steps."""
        return contextlib.nullcontext() if self.on_tpu else tf.device("CPU:0")


OnHost = Callable[[], contextlib.AbstractContextManager[Any]]


def _of_stacked(step: Callable[[Any, Any, Any], Any], on_host: OnHost) -> Callable[..., Any]:
    """In the graph: `step` on one vector of row numbers after the other; what the last one gives."""

    def several(vectors: Any, rows: Any, counts: Any, totals: Any) -> Any:
        def one(number: Any, _: Any) -> Any:
            with on_host():
                mine, count, total = vectors[number, : rows[number]], counts[number], totals[number]
            return number + 1, step((mine,), count, total)

        begin = (tf.constant(0), tf.constant(0.0))
        return tf.while_loop(lambda number, _: number < tf.size(counts), one, begin, parallel_iterations=1)[1]

    return several


def _of_stream(step: Callable[[Any, Any, Any], Any], source: Source, on_host: OnHost) -> Callable[..., Any]:
    """In the graph: `step` on one element of a stream after the other.

    Of its iterator and the element ahead, and of (steps done, most steps to do, seconds after which to do no further).
    Gives (steps done, whether there is another element, seconds in which no step ran since the next element was not
    ready, or below 0 if the last one was not what had to come), what the last step gave, and the next element.
    """

    def several(iterator: Any, ahead: Any, numbers: Any) -> Any:
        iterator = _packed(tf.data.IteratorSpec(source.element_spec), iterator)
        ahead = _packed(tf.OptionalSpec(source.element_spec), ahead)
        first, most = tf.cast(numbers[0], tf.int32), tf.cast(numbers[1], tf.int32)
        # where operations are to be deterministic, TensorFlow refuses to look at the clock
        now = (lambda: tf.constant(0.0, tf.float64)) if tensorflow.is_deterministic() else tf.timestamp
        end = now() + numbers[2]

        # Each variable of the loop costs as much as four operations, so that one holds two things: below 0 the seconds
        # of waiting say that what came was not what was to come.
        def goes_on(done: Any, ahead: Any, waited: Any, _: Any) -> Any:
            with on_host():
                in_time = tf.logical_or(tf.equal(done, 0), now() < end)
                wanted = tf.logical_and(tf.logical_and(done < most, waited >= 0), in_time)
                return tf.logical_and(wanted, ahead.has_value())

        def one(done: Any, ahead: Any, waited: Any, _: Any) -> Any:
            with on_host():
                cut = source.cut(ahead.get_value(), first + done)
            graph = tf.compat.v1.get_default_graph()
            known = len(graph.get_operations())
            result = step(cut.inputs, cut.count, cut.total)
            effects = [each for each in graph.get_operations()[known:] if each.op_def.is_stateful]
            ahead = iterator.get_next_as_optional()  # while the step runs
            with on_host():
                with tf.control_dependencies([result, *effects]):
                    stepped = now()
                with tf.control_dependencies([flat(ahead), stepped]):
                    waited += tf.maximum(now() - stepped, 0)
                if cut.fits is not True:
                    waited = tf.where(cut.fits, waited, tf.constant(-1.0, tf.float64))
            return done + 1, ahead, waited, result

        begin = (tf.constant(0), ahead, tf.constant(0.0, tf.float64), tf.constant(0.0))
        done, ahead, waited, result = tf.while_loop(goes_on, one, begin, parallel_iterations=1)
        found = tf.stack([tf.cast(done, tf.float64), tf.cast(ahead.has_value(), tf.float64), waited])
        return found, result, flat(ahead)

    return several


def _packed(spec: Any, tensor: Any) -> Any:
    """What `flat` has made a tensor of."""
    return tf.nest.pack_sequence_as(spec, [tensor], expand_composites=True)


def have_open_shapes(graph: Any) -> bool:
    """Whether anything that `graph` (a `tf.Graph`) exchanges may have another shape at each step.

    So have gradients of embeddings, whose rows depend on the batch, and rows that all replicas see. TensorFlow takes
    the first step's shape for that of all steps of one call, and breaks off at another one.
    """
    return any(_is_open(node) for node in _exchanges(graph))


def see_alike(group: Group, graph: Any) -> None:
    """Compare what the step of all tasks exchanges, as traced in `graph`: others would wait for ever. Collective.

    Raises StepError, in all tasks alike, if a task exchanges something else.
    """
    if group.tasks > 1:
        exchanged = Counter((node.op, node.attr["T"].type) for node in _exchanges(graph))
        Agreement(group).add("step", digest(sorted(exchanged.items())), OTHER_STEP, error=StepError).exchange()


def _exchanges(graph: Any) -> list[Any]:
    definition = graph.as_graph_def(add_shapes=True)
    nodes = [*definition.node, *(node for function in definition.library.function for node in function.node_def)]
    return [node for node in nodes if node.op.startswith("Collective")]


def _is_open(node: Any) -> bool:
    shapes = node.attr["_output_shapes"].list.shape
    return not shapes or any(shape.unknown_rank or any(dim.size < 0 for dim in shape.dim) for shape in shapes)
