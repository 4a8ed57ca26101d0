# SPDX-License-Identifier: Apache-2.0
"""`dtjob check`: whether a cluster serves the jobs, in a sentence."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from dtjob.bad_input import BadInput
from dtjob.cli.doctor import served
from dtjob.controller.cluster import ClusterError


class Lists:
    """What `connect` gives: a cluster that lists so many jobs, or says why it does not."""

    def __init__(self, jobs: int | ClusterError) -> None:
        self.jobs = jobs
        self.asked: list[tuple[str | None, str | None]] = []

    @asynccontextmanager
    async def connect(self, kubeconfig: str | None) -> "AsyncIterator[Lists]":
        self.asked.append((kubeconfig, None))
        yield self

    async def pages(self, kind: str, namespace: str | None) -> AsyncIterator[tuple[list[str], int]]:
        self.asked.append((kind, namespace))
        if isinstance(self.jobs, ClusterError):
            raise self.jobs
        yield ["job"] * (self.jobs - 1), 1
        yield ["job"], 1


@pytest.mark.parametrize(("namespace", "where"), [(None, "all namespaces"), ("vision", "vision")])
def test_check_prints_the_number_of_jobs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, namespace: str | None, where: str
) -> None:
    cluster, config = Lists(3), tmp_path / "config"
    config.touch()
    monkeypatch.setattr(served.client, "connect", cluster.connect)
    assert served.run(str(config), namespace) == f"the cluster serves DistributedTrainingJobs; there are 3 in {where}"
    assert cluster.asked == [(str(config), None), ("DistributedTrainingJob", namespace)]


def test_a_cluster_that_does_not_serve_them_is_bad_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served.client, "connect", Lists(ClusterError("apply dtjob's crds/ to it")).connect)
    with pytest.raises(BadInput, match="does not serve DistributedTrainingJobs: apply dtjob's crds/ to it"):
        served.run(None, None)


@pytest.mark.parametrize("text", ["{}", "a: [", ""])
def test_a_kubeconfig_of_no_use_is_one_sentence(dtjob, tmp_path, text):
    file = tmp_path / "config"
    file.write_text(text)
    code, out, err = dtjob("check", "--kubeconfig", file)
    assert (code, out) == (2, "")
    (line,) = err.splitlines()
    assert line.startswith("dtjob: no cluster is configured (")
