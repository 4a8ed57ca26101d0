# SPDX-License-Identifier: Apache-2.0
"""How to reach the API server: by kubeconfig, where kubectl looks for it, else as the service account of this pod."""

import base64
import json
import os
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import yaml

from dtjob.client.errors import NoCluster, NotReached
from dtjob.proxies import proxy_for

USUAL_PLACE = "~/.kube/config"
SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_NOT_CONFIGURED = "no cluster is configured; give --kubeconfig FILE, or set KUBECONFIG"
_EXEC_VERSION = "client.authentication.k8s.io/v1"
_EARLY_SECONDS, _EARLY_PART = 60.0, 0.2
"""So long before a credential expires, the plugin is asked again; at most this part of the credential's life."""


@dataclass(frozen=True)
class Access:
    """One API server, and who asks it."""

    server: str
    trusted: ssl.SSLContext | None
    """None for plain HTTP."""
    authorization: Callable[[], str | None]
    """The value of the header Authorization for the next call. Raises ClientError."""
    namespace: str
    server_name: str | None = None
    """The name in the certificate of the server, if it is not the host."""
    own_proxy: str | None = None
    """The proxy of the kubeconfig."""
    renewed: Callable[[str | None], bool] = lambda _: False
    """Takes a value that the API server has refused with 401. Returns whether there is a new credential to try."""
    impersonated: tuple[tuple[str, str], ...] = ()
    """Headers that name the user for whom the calls are made, if the kubeconfig has one."""

    @property
    def proxy(self) -> str | None:
        """The proxy of the kubeconfig or of the environment, None if there is none."""
        server = urlsplit(self.server)
        found = self.own_proxy or proxy_for(server.scheme, server.hostname or "")
        return found if not found or "://" in found else f"http://{found}"

    def headers(self) -> list[tuple[str, str]]:
        """The headers that say who asks. Raises ClientError."""
        authorization = self.authorization()
        return [*([("Authorization", authorization)] if authorization else []), *self.impersonated]


def access(kubeconfig: str | None = None, context: str | None = None) -> Access:
    """The way to the cluster that kubectl would use. Raises NoCluster."""
    files = _files(kubeconfig)
    if not files:
        if kubeconfig is None and context is None and (SERVICE_ACCOUNT / "token").is_file():
            return _of_this_pod()
        raise NoCluster(_NOT_CONFIGURED)
    try:
        return _of_context(_merged(files), context)
    except (KeyError, TypeError, AttributeError, ValueError, OSError, ssl.SSLError, yaml.YAMLError) as error:
        names = ", ".join(map(str, files))
        said = f"{error} is missing" if isinstance(error, KeyError) else " ".join(str(error).split())
        raise NoCluster(f"{names}: the kubeconfig cannot be read: {said}") from None


def _files(kubeconfig: str | None) -> list[Path]:
    if kubeconfig is not None:
        if not Path(kubeconfig).exists() or Path(kubeconfig).is_dir():
            raise NoCluster(f"--kubeconfig: {kubeconfig} is not a file")
        return [Path(kubeconfig)]
    named = os.environ.get("KUBECONFIG")
    places = [one for one in named.split(os.pathsep) if one] if named else [USUAL_PLACE]
    # Not pathlib: it raises where the process may not look into its home, or has none.
    found = [os.path.expanduser(place) for place in places]  # noqa: PTH111
    return [Path(place) for place in found if os.path.isfile(place)]  # noqa: PTH113


def _merged(files: list[Path]) -> dict[str, Any]:
    """Several files as kubectl merges them: the first entry of a name counts. Paths become absolute."""
    whole: dict[str, Any] = {"clusters": {}, "users": {}, "contexts": {}, "current-context": ""}
    for file in files:
        read = yaml.safe_load(file.read_text("utf-8")) or {}
        if not isinstance(read, dict):
            raise ValueError("it is no mapping with clusters, users and contexts")
        whole["current-context"] = whole["current-context"] or read.get("current-context") or ""
        for kind, field in (("clusters", "cluster"), ("users", "user"), ("contexts", "context")):
            for entry in read.get(kind) or []:
                values = dict(entry.get(field) or {})
                for name in ("certificate-authority", "client-certificate", "client-key", "tokenFile"):
                    if values.get(name):
                        values[name] = str((file.parent / values[name]).resolve())
                if os.sep in (plugin := values.get("exec") or {}).get("command", ""):
                    values["exec"] = {**plugin, "command": str((file.parent / plugin["command"]).resolve())}
                whole[kind].setdefault(entry["name"], values)
    return whole


def _of_context(config: Mapping[str, Any], wanted: str | None) -> Access:
    name = wanted or config["current-context"]
    if not name:
        raise NoCluster("the kubeconfig has no current context; choose one with kubectl config use-context NAME")
    if name not in config["contexts"]:
        raise NoCluster(f"the kubeconfig has no context {name}")
    context = config["contexts"][name]
    if context.get("cluster") not in config["clusters"]:
        raise NoCluster(f"the kubeconfig has no cluster {context.get('cluster')}, which its context {name} names")
    if context.get("user") and context["user"] not in config["users"]:
        raise NoCluster(f"the kubeconfig has no user {context['user']}, which its context {name} names")
    cluster, user = config["clusters"][context["cluster"]], config["users"].get(context.get("user"), {})
    if user.get("auth-provider") and not user.get("exec"):
        said = "which is not supported; log in with a plugin (exec) of the cloud"
        raise NoCluster(f"the kubeconfig has an auth-provider for {context['user']}, {said}")
    _check_is_url(str(cluster["server"]))
    if (file := cluster.get("certificate-authority")) and not Path(file).is_file():
        raise NoCluster(f"the kubeconfig has a certificate-authority {file}, which is no file")
    trusted = _trusted(cluster) if str(cluster["server"]).startswith("https") else None
    credentials = _Credentials(user, trusted, cluster)
    credentials.load_certificate()
    return Access(
        str(cluster["server"]).rstrip("/"),
        trusted,
        credentials.authorization,
        context.get("namespace") or "default",
        cluster.get("tls-server-name"),
        cluster.get("proxy-url"),
        credentials.renewed,
        tuple(_impersonated(user)),
    )


def _impersonated(user: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The headers of as, as-uid, as-groups and as-user-extra."""
    for name, field in (("User", "as"), ("Uid", "as-uid")):
        if user.get(field):
            yield f"Impersonate-{name}", str(user[field])
    yield from (("Impersonate-Group", str(group)) for group in user.get("as-groups") or ())
    for key, values in (user.get("as-user-extra") or {}).items():
        yield from ((f"Impersonate-Extra-{quote(key, safe='')}", str(value)) for value in values)


def _check_is_url(server: str) -> None:
    try:
        found = urlsplit(server)
        is_url = found.scheme in ("http", "https") and bool(found.hostname) and found.port != 0
    except ValueError:
        is_url = False
    if not is_url:
        raise NoCluster(f"the kubeconfig has a server {server!r}, which is no URL such as https://HOST:6443")


def _trusted(cluster: Mapping[str, Any]) -> ssl.SSLContext:
    data = cluster.get("certificate-authority-data")
    text = base64.b64decode(data).decode() if data else None
    file = cluster.get("certificate-authority")
    found = ssl.create_default_context(cafile=None if text else file, cadata=text)
    found.verify_flags &= ~ssl.VERIFY_X509_STRICT  # clusters have authorities without all extensions
    if cluster.get("insecure-skip-tls-verify"):
        found.check_hostname, found.verify_mode = False, ssl.CERT_NONE
    return found


class _Credentials:
    """Who the user is: a certificate, a token, a password, or what a plugin says until that expires."""

    def __init__(
        self, user: Mapping[str, Any], trusted: ssl.SSLContext | None = None, cluster: Mapping[str, Any] | None = None
    ) -> None:
        """`cluster`: as the kubeconfig has it. Some plugins ask for it."""
        self._user, self._trusted, self._cluster = user, trusted, cluster or {}
        self._said: Mapping[str, Any] | None = None
        self._until: float | None = None
        self._lock = threading.Lock()

    def load_certificate(self) -> None:
        """Present the certificate of the user, if there is one. New connections have it."""
        if self._trusted is None:
            return
        names = ("client-certificate", "client-key")
        files = [str(self._user.get(name) or "") for name in names if not self._user.get(f"{name}-data")]
        if len(files) == len(names) and all(files):
            self._trusted.load_cert_chain(*files)  # no copy of a key that is a file
            return
        certificate, key = map(self._pem, names)
        if certificate and key:
            _present(self._trusted, certificate, key)
        elif self._user.get("exec"):
            self._plugin()

    def authorization(self) -> str | None:
        """The header's value. Raises NoCluster, and NotReached if a plugin fails that has answered before."""
        if file := self._user.get("tokenFile"):  # before the token, as client-go reads it. The file may rotate.
            return f"Bearer {_token_in(Path(file))}"
        if token := self._user.get("token"):
            return f"Bearer {str(token).strip()}"
        if self._user.get("username"):
            pair = f"{self._user['username']}:{self._user.get('password', '')}"
            return f"Basic {base64.b64encode(pair.encode()).decode()}"
        if self._user.get("exec") and (token := self._plugin().get("token")):
            return f"Bearer {token}"
        return None

    def renewed(self, refused: str | None) -> bool:
        """Whether there is another credential than the refused one. A plugin is asked for another. Raises as above."""
        said = self._said
        if said is None or self.authorization() != refused:  # of a file, or of a thread that was quicker
            return self.authorization() != refused
        with self._lock:
            if self._said is said:
                self._until = 0.0
        return self._plugin() is not said

    def _pem(self, name: str) -> bytes | None:
        data, file = self._user.get(f"{name}-data"), self._user.get(name)
        if data:
            return base64.b64decode(data)
        return Path(file).read_bytes() if file else None

    def _plugin(self) -> Mapping[str, Any]:
        """What the credential plugin says, asked again before that expires. Raises NoCluster, NotReached."""
        with self._lock:
            now = time.time()
            if self._said is not None and (self._until is None or now < self._until):
                return self._said
            try:
                said = _asked(self._user["exec"], self._cluster)
            except NoCluster as error:
                if self._said is None:
                    raise
                raise NotReached(str(error)) from None  # such as a network that is away: a later try may succeed
            self._said, self._until = said, _renewal(said, now)
            if self._trusted is not None and said.get("clientCertificateData"):
                _present(self._trusted, said["clientCertificateData"].encode(), said["clientKeyData"].encode())
            return said


def _renewal(said: Mapping[str, Any], now: float) -> float | None:
    """When the plugin is asked again, in seconds of time.time(). None: its answer does not expire."""
    try:
        expires = datetime.fromisoformat(said["expirationTimestamp"]).timestamp()
    except (KeyError, TypeError, ValueError):
        return None
    return expires - min(_EARLY_SECONDS, _EARLY_PART * (expires - now))


def _token_in(file: Path) -> str:
    """The token of a file, as it is now. Raises NoCluster."""
    try:
        token = file.read_text().strip()
    except OSError as error:
        raise NoCluster(f"the file {file} with the token cannot be read: {error.strerror}") from None
    if not token:  # it is being replaced
        raise NoCluster(f"the file {file} with the token is empty")
    return token


def _asked(plugin: Mapping[str, Any], cluster: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the plugin answers. Somebody at a terminal sees what it says and may answer: it may be a page to log in."""
    version, at_terminal = plugin.get("apiVersion") or _EXEC_VERSION, sys.stdin.isatty() and sys.stderr.isatty()
    spec: dict[str, Any] = {"interactive": at_terminal and plugin.get("interactiveMode") != "Never"}
    if plugin.get("provideClusterInfo"):
        spec["cluster"] = _told(cluster)
    info = {"apiVersion": version, "kind": "ExecCredential", "spec": spec}
    environment = {**os.environ, "KUBERNETES_EXEC_INFO": json.dumps(info)}
    environment |= {one["name"]: one["value"] for one in plugin.get("env") or []}
    command = [plugin["command"], *(plugin.get("args") or [])]
    stdin, stderr = (None, None) if spec["interactive"] else (subprocess.DEVNULL, subprocess.PIPE)
    try:
        answer = subprocess.run(
            command, env=environment, stdin=stdin, stdout=subprocess.PIPE, stderr=stderr, text=True, check=True
        )
        found: Mapping[str, Any] = json.loads(answer.stdout)["status"]
        if not isinstance(found, dict):
            raise ValueError("its answer has no status")
    except (OSError, subprocess.CalledProcessError, ValueError, KeyError, TypeError) as error:
        said = " ".join((getattr(error, "stderr", "") or str(error)).split())
        hint = " ".join(str(plugin.get("installHint") or "").split()) if isinstance(error, FileNotFoundError) else ""
        said = f"{said}{f'; {hint}' if hint else ''}"
        raise NoCluster(f"the credential plugin {plugin['command']} failed: {said}") from None
    return found


def _told(cluster: Mapping[str, Any]) -> dict[str, Any]:
    """The cluster as a plugin is told of it (client.authentication.k8s.io, Cluster)."""
    names = ("server", "tls-server-name", "insecure-skip-tls-verify", "certificate-authority-data", "proxy-url")
    found = {name: cluster[name] for name in names if name in cluster}
    if "certificate-authority" in cluster and "certificate-authority-data" not in found:
        data = Path(cluster["certificate-authority"]).read_bytes()
        found["certificate-authority-data"] = base64.b64encode(data).decode()
    for one in cluster.get("extensions") or ():
        if one.get("name") == "client.authentication.k8s.io/exec":
            found["config"] = one.get("extension")
    return found


def _present(trusted: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Present this certificate on new connections. The ssl module reads files only."""
    with tempfile.TemporaryDirectory(prefix="dtjob-") as folder:  # which only this user can read
        files = Path(folder, "certificate"), Path(folder, "key")
        for file, data in zip(files, (certificate, key), strict=True):
            file.write_bytes(data)
        trusted.load_cert_chain(*files)


def _of_this_pod() -> Access:
    """The API server of the cluster of this pod, as its service account."""
    host, port = os.environ.get("KUBERNETES_SERVICE_HOST", ""), os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    if not host:
        raise NoCluster(_NOT_CONFIGURED)
    server = f"https://{f'[{host}]' if ':' in host else host}:{port}"
    try:
        trusted = _trusted({"certificate-authority": str(SERVICE_ACCOUNT / "ca.crt")})
        namespace = (SERVICE_ACCOUNT / "namespace").read_text().strip()
    except OSError as error:
        raise NoCluster(f"the service account of this pod ({SERVICE_ACCOUNT}) cannot be read: {error}") from None
    credentials = _Credentials({"tokenFile": str(SERVICE_ACCOUNT / "token")})
    return Access(server, trusted, credentials.authorization, namespace, renewed=credentials.renewed)
