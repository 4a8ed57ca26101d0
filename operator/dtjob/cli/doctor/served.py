# SPDX-License-Identifier: Apache-2.0
"""`dtjob check`: asks with the operator's own client and rights whether a cluster serves jobs; `helm test` runs it."""

import asyncio

from dtjob.api.job import KIND
from dtjob.bad_input import BadInput, check_kubeconfig
from dtjob.controller.cluster import ClusterError
from dtjob.kube.calls import client
from dtjob.kube.calls.kubeconfig import NoCluster


def run(kubeconfig: str | None, namespace: str | None) -> str:
    """One sentence with the answer. Raises BadInput where the cluster cannot be asked or does not serve them."""
    check_kubeconfig(kubeconfig)
    try:
        count = asyncio.run(_count(kubeconfig, namespace))
    except NoCluster as error:
        raise BadInput(f"no cluster is configured ({error}); give --kubeconfig FILE or set KUBECONFIG") from None
    except ClusterError as error:
        raise BadInput(f"the cluster does not serve {KIND}s: {error}") from None
    return f"the cluster serves {KIND}s; there are {count} in {namespace or 'all namespaces'}"


async def _count(kubeconfig: str | None, namespace: str | None) -> int:
    async with client.connect(kubeconfig) as cluster:
        return sum([len(jobs) async for jobs, _ in cluster.pages(KIND, namespace)])
