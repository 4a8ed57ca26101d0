# SPDX-License-Identifier: Apache-2.0
"""Rules about gangs and topology: numbers of pods, and keys of labels over any text."""

from hypothesis import example, given, settings
from hypothesis import strategies as st

from dtjob.crd.answers.problems import problems
from tests.refusals.manifests import job


@settings(max_examples=30)
@given(prefix=st.none() | st.from_regex(r"[a-z0-9.-]{1,12}", fullmatch=True), name=st.text("aZ0-_./=", max_size=65))
@example("a.b", "rack")
@example(None, "a" * 63)
@example(None, "a" * 64)
def test_a_label_has_a_subdomain_and_a_name(prefix: str | None, name: str):
    key = name if prefix is None else f"{prefix}/{name}"
    parts = key.split("/")
    plain = all(one.isalnum() or one in "-_." for one in parts[-1])
    named = 0 < len(parts[-1]) <= 63 and plain and parts[-1][0].isalnum() and parts[-1][-1].isalnum()
    domain = parts[0].split(".") if len(parts) == 2 else []
    of_domain = all(one and one.replace("-", "a").isalnum() and one == one.lower() for one in domain)
    prefixed = of_domain and all(one[0] != "-" and one[-1] != "-" and "_" not in one for one in domain)
    good = len(parts) <= 2 and named and (prefixed if len(parts) == 2 else True)
    assert (problems(job(scheduling={"topology": {"required": key}})) == []) is good
