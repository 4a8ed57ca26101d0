# SPDX-License-Identifier: Apache-2.0
"""A job's Service, ConfigMap and NetworkPolicy as the API server has them."""

from tools.cluster.rest import Api, Object

FOREIGN = {"metadata": {"labels": {"mesh.example.com/revision": "7"}, "annotations": {"mesh.example.com/at": "noon"}}}
"""What a service mesh adds to objects that are not its own."""


def spec_of(api: Api, kind: str, namespace: str) -> Object:
    """The spec of the job's object of this kind."""
    found: Object = api.get(kind, namespace, "digits")["spec"]
    return found


def wait_spec(api: Api, kind: str, namespace: str, wanted: Object) -> Object:
    """Wait until that is its spec; returns the object."""
    found = api.wait_for(kind, namespace, "digits", lambda one: one and one["spec"] == wanted)
    assert found is not None
    return found
