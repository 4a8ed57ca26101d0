# SPDX-License-Identifier: Apache-2.0
"""A small client of the API server: plain dicts in and out, and waiting by watch instead of sleeping.

api = Api(cluster.kubeconfig)
pod = api.get("pods", "default", "digits-chief-0-0")
api.wait("pods", "default", lambda pods: len(pods) == 4)           # {name: object} -> anything true
api.wait_for("dtjobs", "default", "digits", lambda job: job and job.get("status", {}).get("phase") == "Running")
"""

import base64
import contextlib
import json
import ssl
import tempfile
import time
import urllib.parse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import urllib3
import yaml

Object = dict[str, Any]

GROUPS = {
    "configmaps": "api/v1",
    "events": "api/v1",
    "namespaces": "api/v1",
    "nodes": "api/v1",
    "persistentvolumeclaims": "api/v1",
    "persistentvolumes": "api/v1",
    "pods": "api/v1",
    "resourcequotas": "api/v1",
    "serviceaccounts": "api/v1",
    "secrets": "api/v1",
    "services": "api/v1",
    "networkpolicies": "apis/networking.k8s.io/v1",
    "storageclasses": "apis/storage.k8s.io/v1",
    "leases": "apis/coordination.k8s.io/v1",
    "customresourcedefinitions": "apis/apiextensions.k8s.io/v1",
    "clusterroles": "apis/rbac.authorization.k8s.io/v1",
    "clusterrolebindings": "apis/rbac.authorization.k8s.io/v1",
    "workloads": "apis/kueue.x-k8s.io/v1beta2",
    "resourceflavors": "apis/kueue.x-k8s.io/v1beta2",
    "clusterqueues": "apis/kueue.x-k8s.io/v1beta2",
    "localqueues": "apis/kueue.x-k8s.io/v1beta2",
    "topologies": "apis/kueue.x-k8s.io/v1beta2",
    "admissionchecks": "apis/kueue.x-k8s.io/v1beta2",
    "multikueueconfigs": "apis/kueue.x-k8s.io/v1beta2",
    "multikueueclusters": "apis/kueue.x-k8s.io/v1beta2",
    "workloadpriorityclasses": "apis/kueue.x-k8s.io/v1beta2",
    "validatingwebhookconfigurations": "apis/admissionregistration.k8s.io/v1",
    "distributedtrainingjobs": "apis/training.dtjob.dev/v1beta1",
    "tfjobs": "apis/kubeflow.org/v1",
}
"""Where each resource is served."""
SHORT = {"dtjob": "distributedtrainingjobs", "dtjobs": "distributedtrainingjobs"}

CRD = "distributedtrainingjobs.training.dtjob.dev"
DEFAULT_TIMEOUT = 120.0
"""For one wait, in seconds: only what never comes takes that long, also on a machine that is busy with other things."""
ANSWER_SECONDS = 30.0
"""How long a busy API server may take for the answer to a call, or for the end of a watch whose time is over."""
LOOK_UP_SECONDS = 2.0
"""How often a wait in which nothing happens looks whether a helper has failed."""
TOO_MANY_REQUESTS = 429
"""Try again in a moment; of an eviction it is the answer itself."""
METADATA_ONLY = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
"""What to accept where an object's content is of no use."""


class ApiError(Exception):
    """The API server refused. `status` is the HTTP code, `message` what it says, `body` its whole answer."""

    def __init__(self, status: int, body: Object) -> None:
        super().__init__(f"{status}: {body.get('message', body)}")
        self.status = status
        self.message = str(body.get("message", ""))
        self.body = body


class Api:
    """Calls to one API server with the credentials of a kubeconfig: a token, or a client's certificate.

    The kubeconfig has one context, and certificates in it. Safe to use from several threads.
    """

    UNREACHABLE = urllib3.exceptions.HTTPError
    """What a call raises where no API server answers."""

    def __init__(self, kubeconfig: Path | str) -> None:
        config = yaml.safe_load(Path(kubeconfig).read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        authority = cluster.get("certificate-authority-data")  # without: one of the system's
        context = ssl.create_default_context(cadata=base64.b64decode(authority).decode() if authority else None)
        self._server = cluster["server"]
        self._headers = {"Authorization": f"Bearer {user['token']}"} if "token" in user else {}
        if "client-certificate-data" in user:
            with tempfile.NamedTemporaryFile() as file:  # readable by its owner only
                file.write(b"\n".join(base64.b64decode(user[f"client-{part}-data"]) for part in ("certificate", "key")))
                file.flush()
                context.load_cert_chain(file.name)
        self._pool = urllib3.PoolManager(maxsize=16, ssl_context=context, retries=False)
        self.helpers_errors: list[BaseException] = []
        """What those who work beside the caller ran into: nobody waits any longer for what they were to do."""

    def get(self, resource: str, namespace: str | None, name: str) -> Object:
        """One object. Raises ApiError (404 where there is none)."""
        return self.call("GET", path_of(resource, namespace, name))

    def list(self, resource: str, namespace: str | None = None, selector: str = "") -> list[Object]:
        """All objects of a namespace, or of the cluster, that the label selector takes."""
        items: list[Object] = self.call("GET", path_of(resource, namespace), None, {"labelSelector": selector})["items"]
        return items

    def create(self, resource: str, namespace: str | None, manifest: Object, **query: str) -> Object:
        """Create an object. Unknown fields are refused, as kubectl has it; `dryRun="All"` only asks."""
        return self.call("POST", path_of(resource, namespace), manifest, {"fieldValidation": "Strict", **query})

    def replace(self, resource: str, namespace: str | None, manifest: Object, sub: str = "", **query: str) -> Object:
        """PUT an object, or its subresource `sub`, against the resourceVersion it carries."""
        return self.call("PUT", path_of(resource, namespace, manifest["metadata"]["name"], sub), manifest, query)

    def patch(
        self, resource: str, namespace: str | None, name: str, patch: Object, sub: str = "", **query: str
    ) -> Object:
        """A JSON merge patch."""
        kind = "application/merge-patch+json"
        return self.call(
            "PATCH", path_of(resource, namespace, name, sub), patch, {"fieldValidation": "Strict", **query}, kind
        )

    def delete(
        self, resource: str, namespace: str | None, name: str, grace: int | None = None, uid: str | None = None
    ) -> None:
        """Delete an object in the background; gone already, or another uid, is fine."""
        options: Object = {"propagationPolicy": "Background"}
        if grace is not None:
            options["gracePeriodSeconds"] = grace
        if uid:
            options["preconditions"] = {"uid": uid}
        try:
            self.call("DELETE", path_of(resource, namespace, name), options)
        except ApiError as error:
            if error.status not in (404, 409):
                raise

    def call(
        self,
        method: str,
        path: str,
        body: Object | None = None,
        query: dict[str, str] | None = None,
        content_type: str = "application/json",
    ) -> Object:
        """One call. Raises ApiError for every answer that is no success; one that comes too early for the API server,
        as it does for objects of a kind that was defined a moment ago, is made again as every client does."""
        limit = time.monotonic() + ANSWER_SECONDS
        while True:
            answer = self._pool.request(
                method,
                self._url(path, query),
                body=None if body is None else json.dumps(body),
                headers={**self._headers, "Content-Type": content_type},
                timeout=ANSWER_SECONDS,
            )
            data: Object = json.loads(answer.data)
            if answer.status < 300:
                return data
            too_early = answer.status == TOO_MANY_REQUESTS and not path.endswith("/eviction")
            if not too_early or time.monotonic() >= limit:
                raise ApiError(answer.status, data)
            time.sleep(0.1)

    def watch(
        self,
        resource: str,
        namespace: str | None,
        version: str,
        timeout: float,
        opened: Callable[[Callable[[], None]], None] = lambda interrupt: None,
        accept: str = "application/json",
    ) -> Iterator[tuple[str, Object]]:
        """Events (type, object) after this resourceVersion, until the server ends the stream: when the time is over,
        or after an ERROR.

        `opened` is given a function that ends the stream from another thread. `accept` may ask for METADATA_ONLY.
        """
        query = {"watch": "1", "resourceVersion": version, "timeoutSeconds": str(max(1, int(timeout)))}
        stream = self._pool.request(
            "GET",
            self._url(path_of(resource, namespace), query),
            headers={**self._headers, "Accept": accept},
            timeout=urllib3.Timeout(connect=10.0, read=max(0.1, timeout) + ANSWER_SECONDS),
            preload_content=False,
        )
        if stream.status >= 300:  # that version is too old, say
            yield "ERROR", json.loads(stream.read())
            return

        def interrupt() -> None:
            with contextlib.suppress(OSError, ValueError):  # it has ended by itself
                stream.shutdown()

        opened(interrupt)
        rest = b""
        try:
            for chunk in stream.stream(None):
                *lines, rest = (rest + chunk).split(b"\n")
                for line in filter(None, lines):
                    event = json.loads(line)
                    yield event["type"], event["object"]
        except urllib3.exceptions.HTTPError:  # the time is over, or the server went away
            return
        finally:
            stream.close()

    def wait(
        self,
        resource: str,
        namespace: str | None,
        condition: Callable[[dict[str, Object]], Any],
        timeout: float = DEFAULT_TIMEOUT,
    ) -> dict[str, Object]:
        """Return {name: object} as soon as `condition` holds for it. Raises AssertionError with what was there, and at
        once where a helper has failed (`helpers_errors`)."""
        limit = time.monotonic() + timeout
        version = ""
        seen: dict[str, Object] = {}
        while True:
            if not version:
                listing = self.call("GET", path_of(resource, namespace))
                seen, version = {item["metadata"]["name"]: item for item in listing["items"]}, _version(listing)
                if condition(seen):
                    return seen
            left = min(limit - time.monotonic(), LOOK_UP_SECONDS)
            for kind, item in self.watch(resource, namespace, version, left):
                if kind == "ERROR":
                    version = ""
                    break
                version = _version(item)
                seen[item["metadata"]["name"]] = item
                if kind == "DELETED":
                    del seen[item["metadata"]["name"]]
                if condition(seen):
                    return seen
            if self.helpers_errors:
                raise AssertionError(f"a helper has failed: {self.helpers_errors[0]!r}") from self.helpers_errors[0]
            if time.monotonic() >= limit:
                found = json.dumps({name: _summary(item) for name, item in seen.items()}, indent=1)
                raise AssertionError(f"after {timeout:.0f} s still not so for {resource} in {namespace}: {found}")

    def wait_for(
        self,
        resource: str,
        namespace: str | None,
        name: str,
        condition: Callable[[Object | None], Any],
        timeout: float = DEFAULT_TIMEOUT,
    ) -> Object | None:
        """Return one object (None: it is not there) as soon as `condition` holds for it."""
        return self.wait(resource, namespace, lambda seen: condition(seen.get(name)), timeout).get(name)

    def wait_established(self, crd: str = CRD) -> None:
        """Return once the API server serves the CRD's objects. (`kubectl wait` fails while it has no status.)"""

        def established(found: Object | None) -> bool:
            conditions = ((found or {}).get("status") or {}).get("conditions") or []  # null before the first was set
            return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)

        self.wait_for("customresourcedefinitions", None, crd, established)

    def _url(self, path: str, query: dict[str, str] | None) -> str:
        used = {key: value for key, value in (query or {}).items() if value}
        return f"{self._server}/{path}" + (f"?{urllib.parse.urlencode(used)}" if used else "")


def path_of(resource: str, namespace: str | None, name: str = "", sub: str = "") -> str:
    """Where a resource of a namespace (None: of the cluster), or one object of it, is served."""
    resource = SHORT.get(resource, resource)
    parts = [GROUPS[resource], *(["namespaces", namespace] if namespace else []), resource, name, sub]
    return "/".join(filter(None, parts))


def _version(found: Object) -> str:
    """The resourceVersion of an object or a list."""
    return str(found["metadata"]["resourceVersion"])


def _summary(item: Object) -> Object:
    return {"status": item.get("status"), "deletionTimestamp": item["metadata"].get("deletionTimestamp")}
