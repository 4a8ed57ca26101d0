# SPDX-License-Identifier: Apache-2.0
"""Which resource a call is about."""

import pytest

from dtjob.kube.calls.kinds import resource_of


@pytest.mark.parametrize(
    ("path", "resource"),
    [
        ("/api/v1/pods?limit=500", "pods"),
        ("/api/v1/namespaces/a/pods?fieldValidation=Strict", "pods"),
        ("/api/v1/namespaces/a/pods/digits-chief-0-0", "pods"),
        ("/apis/training.dtjob.dev/v1beta1/distributedtrainingjobs", "distributedtrainingjobs"),
        ("/apis/training.dtjob.dev/v1beta1/namespaces/a/distributedtrainingjobs/digits/status",
         "distributedtrainingjobs/status"),
        ("/apis/coordination.k8s.io/v1/namespaces/a/leases/dtjob", "leases"),
        ("/apis/scheduling.k8s.io/v1beta1/namespaces/a/podgroups/digits", "podgroups"),
        ("/apis/scheduling.k8s.io/v1beta1", "<discovery>"),
    ],
)  # fmt: skip
def test_calls_are_counted_by_resource(path: str, resource: str):
    assert resource_of(path) == resource
