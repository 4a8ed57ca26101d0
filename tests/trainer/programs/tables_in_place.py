# SPDX-License-Identifier: Apache-2.0
"""Under ParameterServer: which operations a training step has on a large table and on its slots, and where a save has
their values."""

import keras
import numpy as np

import dtjob_trainer as dt
from dtjob_trainer.engines.parameter_server import ParameterServerEngine
from dtjob_trainer.models import values

ROWS, WIDTH = 1000, 8
WHOLE = {"ReadVariableOp", "AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp"}
"""What reads or writes all rows."""
own, graphs = ParameterServerEngine._function, []


def seen(self, kind, source):
    function = own(self, kind, source)
    if kind == "train":
        graphs.append(function.get_concrete_function().graph)
    return function


def tables_of(model):
    """The shards of the table and of its slots: all that has so many columns."""
    for variable in [*model.variables, *model.optimizer.variables]:
        for part in getattr(variable.value, "variables", [variable.value]):
            if part.shape.rank == 2 and part.shape[1] == WIDTH:
                yield part


def operations_on(tables, graph):
    """Types of the operations that take one of the tables, and of those that take a tensor of so many rows."""
    sizes = {table.shape[0] for table in tables} | {ROWS}
    handles = {id(table.handle): table for table in tables}
    inputs = {inner.name for outer, inner in graph.captures if id(outer) in handles}
    for operation in graph.get_operations():
        if any(tensor.name in inputs for tensor in operation.inputs):
            yield operation.type
        for tensor in operation.outputs:
            if tensor.shape.rank and tensor.shape[0] in sizes:
                yield f"{operation.type} of {tensor.shape[0]} rows"


def places_of_values(model):
    """The devices on which a save has the values of all variables, and pieces of them."""
    found = values.rows_there(dict(enumerate(v.value for v in [*model.variables, *model.optimizer.variables])))
    for parts in found.values():
        for rows in parts:
            yield rows.tensor.device
            yield from (piece.tensor.device for piece in rows.pieces(rows.tensor.dtype))


ParameterServerEngine._function = seen
values.PIECE_BYTES = ROWS * WIDTH
x = np.random.default_rng(0).integers(0, ROWS, (64, 3)).astype(np.int32)
for optimizer in (keras.optimizers.SGD(0.1), keras.optimizers.Adagrad(0.1)):
    stack = [keras.Input((3,), dtype="int32"), keras.layers.Embedding(ROWS, WIDTH), keras.layers.Flatten()]
    model = keras.Sequential([*stack, keras.layers.Dense(1)])
    model.compile(optimizer, "mse")
    dt.fit(model, x, np.zeros((64, 1), np.float32), batch_size=8, epochs=1, verbose=0)
    found = set(operations_on(list(tables_of(model)), graphs[-1]))
    print(type(optimizer).__name__, sorted(found))
    assert any(kind.startswith("ResourceGather") for kind in found), found
    assert not {kind for kind in found if kind in WHOLE or "rows" in kind}, found
    assert all("/job:ps" in device for device in places_of_values(model))
