# SPDX-License-Identifier: Apache-2.0
"""`dtjob version`: which version of the operator a cluster has."""

from dtjob.cli.doctor.looks import OPERATORS
from dtjob.client.cluster import Cluster
from dtjob.client.errors import Forbidden

_VERSION = "app.kubernetes.io/version"


def of_operator(cluster: Cluster) -> str:
    """A line with the version of each operator. Raises ClientError if the cluster does not answer."""
    try:
        found = cluster.connection.call("GET", OPERATORS[0], query=OPERATORS[1])["items"]
    except Forbidden:
        return "operator: you may not look at it"
    versions = sorted({str((one["metadata"].get("labels") or {}).get(_VERSION, "unknown")) for one in found})
    return f"operator {', '.join(versions)}" if versions else "operator: the cluster has none"
