# SPDX-License-Identifier: Apache-2.0
"""The programs that tests and benchmarks run, and the Go modules that pin them. Standard library only."""

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path

MODULES = Path(__file__).resolve().parent / "go"
PEERS = Path(__file__).resolve().parents[1] / "benchmarks" / "peers"
"""Where the modules of programs are that dtjob is measured beside."""
_VERSION_PACKAGE = "k8s.io/component-base/version"
_HELM_3 = "helm.sh/helm/v3"


@dataclass(frozen=True)
class Tool:
    """One program: the Go module below go/ that pins it, and its package in that module."""

    name: str
    module: str
    package: str
    minutes: str
    """How long its first build takes on two cores, in words."""
    patched: str = ""
    """A Go module that it is built with a few more files in (`patched.py`)."""
    files: tuple[str, ...] = ()
    """Files of the package's module, by their paths there, that are put beside the built program."""
    modules: Path = MODULES
    """The directory that holds the Go module."""
    tags: str = ""
    """Build tags."""

    @property
    def directory(self) -> Path:
        """The directory of the module's go.mod."""
        return self.modules / self.module

    @property
    def required(self) -> tuple[str, str]:
        """The module that holds the package, and the version of it that go.mod requires."""
        required = re.findall(r"^\s*(?:require )?(\S+) (v\S+)", (self.directory / "go.mod").read_text(), re.M)
        module, version = max(pair for pair in required if f"{self.package}/".startswith(f"{pair[0]}/"))
        return str(module), str(version)

    @property
    def version(self) -> str:
        """What go.mod requires of the module that holds the package; of a program of our own, its files' hash."""
        if self.package == ".":
            files = sorted(path for path in self.directory.iterdir() if path.suffix in (".go", ".mod", ".sum"))
            return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()
        return self.required[1]

    @property
    def flags(self) -> tuple[str, ...]:
        """Arguments of `go build`. Without the version flags, Kubernetes' programs call themselves v0.0.0, and helm 3
        takes every cluster that it cannot ask for Kubernetes 1.20."""
        linker = "-s -w"
        found = re.match(r"v(\d+)\.(\d+)", self.version)
        if found and self.module.startswith("kubernetes"):
            version = {"gitVersion": self.version, "gitMajor": found[1], "gitMinor": found[2]}
            linker += "".join(f" -X {_VERSION_PACKAGE}.{key}={value}" for key, value in version.items())
        if self.package.startswith(_HELM_3):
            (minor,) = re.findall(r"k8s.io/client-go v0\.(\d+)", (self.directory / "go.mod").read_text())
            linker += f" -X {_HELM_3}/internal/version.version={self.version}"
            linker += (
                f" -X {_HELM_3}/pkg/chartutil.k8sVersionMajor=1 -X {_HELM_3}/pkg/chartutil.k8sVersionMinor={minor}"
            )
        return ("-trimpath", "-ldflags", linker, *(("-tags", self.tags) if self.tags else ()))

    @property
    def cached(self) -> Path:
        """Where the built program is, or will be. Another version or other flags are another directory.

        What go.mod and go.sum hold besides counts for nothing: a program that joins a module rebuilds no other.
        """
        content = hashlib.sha256(" ".join((self.package, self.version, *self.flags, *self.files)).encode())
        return cache() / "bin" / content.hexdigest()[:16] / self.name


VERSIONS = ("1.34", "1.35", "1.36", "1.37")
"""The versions of Kubernetes that can be built. `DTJOB_KUBERNETES` chooses another than PINNED."""
PINNED = "1.36"
NEXT = "1.37"
"""The second version of Kubernetes that gangs are run under: their API is another there."""


def kubernetes(version: str) -> str:
    """The Go module of a version of Kubernetes. Raises ValueError if nobody has pinned it."""
    if version not in VERSIONS:
        raise ValueError(f"DTJOB_KUBERNETES is {version}: write one of {', '.join(VERSIONS)}")
    return "kubernetes" if version == PINNED else f"kubernetes-{version}"


_KUBERNETES = {
    "kube-apiserver": "5 minutes",
    "kube-controller-manager": "2 minutes",
    "kubectl": "1 minute",
    "kube-scheduler": "1 minute",
    "kubelet": "3 minutes",
    "kube-proxy": "1 minute",
    "kubeadm": "1 minute",
}
_CHOSEN = kubernetes(os.environ.get("DTJOB_KUBERNETES") or PINNED)

_CONTAINERD = {"containerd": "5 minutes", "ctr": "1 minute", "containerd-shim-runc-v2": "1 minute"}
_CONTAINERD_COMMANDS = "github.com/containerd/containerd/v2/cmd"
_CONTAINERD_TAGS = "no_btrfs no_devmapper no_zfs no_aufs"
"""What kind builds its own containerd with."""

_LEAST_OF_PROMETHEUS = "remove_all_sd,enable_kubernetes_sd"
"""Without the libraries of all clouds. The pages of Prometheus itself are left out, too."""

_STAGES = tuple(
    f"kustomize/stage/{name}.yaml"
    for name in ("node/fast/node-initialize", "pod/fast/pod-ready", "pod/fast/pod-delete")
)
"""How kwok lets nodes become ready, pods run, and deleted pods go."""

TOOLS = {
    tool.name: tool
    for tool in (
        Tool("etcd", "etcd", "go.etcd.io/etcd/server/v3", "1 minute"),
        *(Tool(name, _CHOSEN, f"k8s.io/kubernetes/cmd/{name}", minutes) for name, minutes in _KUBERNETES.items()),
        *(
            Tool(f"{name}-{NEXT}", kubernetes(NEXT), f"k8s.io/kubernetes/cmd/{name}", minutes)
            for name, minutes in (
                ("kube-apiserver", "10 minutes"),
                ("kube-controller-manager", "2 minutes"),
                ("kube-scheduler", "1 minute"),
            )
        ),
        Tool("coredns", "coredns", "github.com/coredns/coredns", "4 minutes"),
        Tool("helm", "helm", "helm.sh/helm/v4/cmd/helm", "3 minutes"),
        Tool("helm-3", "helm-3", "helm.sh/helm/v3/cmd/helm", "1 minute"),
        Tool("kind", "kind", "sigs.k8s.io/kind", "1 minute"),
        *(
            Tool(name, "containerd", f"{_CONTAINERD_COMMANDS}/{name}", minutes, tags=_CONTAINERD_TAGS)
            for name, minutes in _CONTAINERD.items()
        ),
        Tool(
            "local-path-provisioner",
            "local-path-provisioner",
            "github.com/rancher/local-path-provisioner",
            "5 minutes",
        ),
        Tool("conditions", "conditions", ".", "10 seconds"),
        Tool("kueue", "kueue", "sigs.k8s.io/kueue/cmd/kueue", "4 minutes"),
        Tool("vc-scheduler", "volcano", "volcano.sh/volcano/cmd/scheduler", "12 minutes", "volcano.sh/apis"),
        Tool(
            *("vc-controller-manager", "volcano", "volcano.sh/volcano/cmd/controller-manager", "1 minute"),
            "volcano.sh/apis",
        ),
        Tool(
            *("scheduler-with-plugins", "scheduler-plugins", "sigs.k8s.io/scheduler-plugins/cmd/scheduler"),
            "16 minutes",
        ),
        Tool("kube-router", "kube-router", "github.com/cloudnativelabs/kube-router/v2/cmd/kube-router", "3 minutes"),
        Tool("kwok", "kwok", "sigs.k8s.io/kwok/cmd/kwok", "2 minutes", files=_STAGES),
        *(
            Tool(name, "prometheus", f"github.com/prometheus/prometheus/cmd/{name}", minutes, tags=_LEAST_OF_PROMETHEUS)
            for name, minutes in (("promtool", "3 minutes"), ("prometheus", "1 minute"))
        ),
        Tool(
            "training-operator",
            "training-operator",
            "github.com/kubeflow/training-operator/cmd/training-operator.v1",
            "3 minutes",
            files=("manifests/base/crds/kubeflow.org_tfjobs.yaml",),
            modules=PEERS,
        ),
    )
}
CONTROL_PLANE = ("etcd", "kube-apiserver", "kube-controller-manager", "kubectl")
"""What a control plane without nodes runs."""
NODE = (*CONTROL_PLANE, "kube-scheduler", "kubelet", "coredns")
"""What a cluster with a node runs."""
KIND_NODE = (*NODE, "kubeadm", "kube-proxy", *_CONTAINERD, "local-path-provisioner")
"""What the image of kind's nodes holds that `make kind` builds."""
POLICIES = "kube-router"
"""What enforces NetworkPolicies on a node."""
BENCHMARKS = (*CONTROL_PLANE, "kube-scheduler", "kwok")
"""What the operator's benchmarks run, without the peer."""
NEXT_KUBERNETES = tuple(f"{name}-{NEXT}" for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler"))
"""The next Kubernetes, as far as gangs need it."""
GANGS = ("vc-scheduler", "vc-controller-manager", "scheduler-with-plugins", *NEXT_KUBERNETES)
"""What binds gangs beside Kubernetes' own scheduler."""
SETS = {
    "control-plane": CONTROL_PLANE,
    "node": NODE,
    "kind-node": KIND_NODE,
    "benchmarks": (*BENCHMARKS, "training-operator"),
    "gangs": GANGS,
}


def cache() -> Path:
    """The directory outside the tree that holds what was built."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dtjob"
