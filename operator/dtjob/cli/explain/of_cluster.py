# SPDX-License-Identifier: Apache-2.0
"""What a cluster says of the jobs that it runs: the namespace, and what its operator fills in."""

from dtjob.api.job import Job
from dtjob.bad_input import BadInput
from dtjob.cli.default_options import defaults
from dtjob.cli.doctor.looks import OPERATORS, arguments_of, values_of
from dtjob.client.cluster import Cluster
from dtjob.client.errors import Forbidden
from dtjob.objects.defaults import NO_DEFAULTS, Defaults


def in_namespace(job: Job, namespace: str) -> Job:
    """The job in this namespace, if its manifest names none."""
    if "namespace" in job.metadata.model_fields_set:
        return job
    return job.model_copy(update={"metadata": job.metadata.model_copy(update={"namespace": namespace})})


def defaults_of(cluster: Cluster) -> tuple[Defaults, str]:
    """What the operator of this cluster fills in, and a sentence if that cannot be seen. Raises BadInput."""
    try:
        found = cluster.connection.call("GET", OPERATORS[0], query=OPERATORS[1])["items"]
    except Forbidden:
        return NO_DEFAULTS, "you may not look at the operator of this cluster, so its defaults are not known"
    if not found:
        return NO_DEFAULTS, "the cluster has no operator of dtjob, so there are no defaults"
    words = arguments_of(found[0])
    images, providers = values_of(words, "--default-image"), values_of(words, "--default-gang-provider")
    labels, pods = values_of(words, "--default-pod-label"), values_of(words, "--default-pod")
    try:
        image, provider, pod = (next(iter(values), None) for values in (images, providers, pods))
        return defaults(image, labels, provider, pod), ""
    except BadInput as error:
        raise BadInput(f"the operator of this cluster: {error}") from None
