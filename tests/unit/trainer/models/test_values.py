# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.models.values: how much is read at once."""

import numpy as np

from dtjob_trainer.models.values import Held, bytes_of, form_of, in_groups


def test_variables_are_read_in_groups_of_so_many_bytes_and_larger_ones_alone() -> None:
    kinds = {name: ((size,), "float32") for name, size in {"a": 1, "b": 2, "c": 5, "d": 1, "e": 1}.items()}

    def size(name: str) -> int:
        return bytes_of(kinds[name])

    assert list(in_groups(kinds, size, 12)) == [["a", "b"], ["c"], ["d", "e"]]
    assert list(in_groups([], size, 12)) == []


def test_kinds_have_the_names_of_types_and_their_bytes() -> None:
    held = Held({"half": np.zeros((2, 3), np.float16), "count": np.int64(3)})
    assert held.forms == {"half": ((2, 3), "float16"), "count": ((), "int64")}
    assert [bytes_of(kind) for kind in held.forms.values()] == [12, 8]
    assert form_of((4,), "bfloat16") == ((4,), "bfloat16")
    assert held.array("count") == 3
