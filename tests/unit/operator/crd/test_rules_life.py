"""Rules about a job's life: the path in managedBy, over any text."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from dtjob.crd.problems import problems
from tests.refusals.manifests import job


@given(
    domain=st.from_regex(r"[a-z0-9.-]{1,20}", fullmatch=True), path=st.text("ab/~%!;=:+-._", min_size=1, max_size=20)
)
@example("a", "/")
def test_a_domain_before_a_path_is_taken_where_it_is_a_subdomain(domain: str, path: str) -> None:
    labels = domain.split(".")
    good = all(label and label[0] != "-" and label[-1] != "-" for label in labels)
    assert (problems(job(managedBy=f"{domain}/{path}")) == []) is good


@given(start=st.none() | st.integers(1, 100), active=st.none() | st.integers(1, 100))
def test_a_start_deadline_comes_before_the_end(start: int | None, active: int | None) -> None:
    policy = {"startDeadlineSeconds": start, "activeDeadlineSeconds": active}
    assert (problems(job(**policy)) == []) is (start is None or active is None or start < active)
