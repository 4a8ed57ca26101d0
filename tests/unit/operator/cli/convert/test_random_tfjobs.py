# SPDX-License-Identifier: Apache-2.0
"""Random changes of TFJobs: each is refused in words, or its result is valid."""

import json
from copy import deepcopy
from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dtjob.cli.convert.reading import CannotConvert
from dtjob.cli.convert.tfjob import convert
from dtjob.crd.answers.problems import problems
from dtjob.manifests.job_file import with_a_name
from tests.refusals.mutations import mutated
from tests.unit.fuzzed import fuzzed
from tests.unit.operator.cli.convert.tfjobs import FILES, of_file

TFJOBS = [one for file in FILES for one in of_file(file)]


@fuzzed(60)
@given(tfjob=st.sampled_from(TFJOBS), seed=st.integers(0, 2**32), program=st.booleans())
def test_a_changed_tfjob_is_refused_in_words_or_its_result_is_valid(
    tfjob: dict[str, Any], seed: int, program: bool
) -> None:
    changed = mutated(tfjob, Random(seed))
    before, made, refused = deepcopy(changed), None, ""
    try:
        made = convert(changed, program=program).manifest
    except CannotConvert as error:
        refused = str(error)
    assert refused if made is None else problems(with_a_name(made)) == [], json.dumps(before)
    assert changed == before, "the TFJob was changed"
