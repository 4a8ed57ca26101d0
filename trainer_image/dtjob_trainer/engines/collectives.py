# SPDX-License-Identifier: Apache-2.0
"""What a traced step exchanges with other replicas."""

from collections import Counter
from typing import Any

from dtjob_trainer.errors import StepError
from dtjob_trainer.strategies.agreement import Agreement, digest
from dtjob_trainer.strategies.collective import Group

OTHER_STEP = (
    "the step of task {task} exchanges other values than that of {chief}; make the same model, loss and train_step in "
    "every task, and let none of them depend on the task or its machine"
)


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
