# SPDX-License-Identifier: Apache-2.0
"""The image of kind's nodes where no registry answers: `kind build node-image` with programs from the Go proxy.

All programs are in one image, which gets each name that kubeadm and kind ask for, whatever version that name has. A
shell script takes the place of kindnetd, which is not in the Go proxy: NetworkPolicies are stored and not enforced.
"""

import hashlib
import io
import json
import re
import shutil
import tarfile
import tempfile
from collections.abc import Iterable
from pathlib import Path

from tools import binaries, debian_base
from tools.images import Engine, ImagesError, Say
from tools.programs import KIND_NODE, TOOLS, cache

HERE = Path(__file__).parent
RECIPE = ("Dockerfile", "default-cni.yaml", "node_image.py")
"""The files of this directory that decide what is in the image."""
RUNTIME = ("containerd", "ctr", "containerd-shim-runc-v2")
"""Programs of a node. All others run in pods, but for those of SERVER."""
SERVER = ("kubeadm", "kubelet", "kubectl")
ENTRY = {"coredns": "coredns", "pause": "pause"}
"""Names of images that run without a command, and the stage of the Dockerfile that has one."""
ARCHIVES = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy")
"""The archives of images that kind takes from a server's tarball."""
_CONSTANTS = {
    "pkg/build/nodeimage/const_cni.go": r'^const kindnetdImage = "(.+)"',
    "pkg/build/nodeimage/const_storage.go": r'^const storage\w+Image = "(.+)"',
    "images/base/files/etc/containerd/config.toml": r'^\s*sandbox_image = "(.+)"',
}
"""Where kind's sources name the images that they ask for."""


def reference() -> str:
    """The image's name. Other programs, or another RECIPE, give another name."""
    files = [(HERE / name).read_bytes() for name in RECIPE]
    places = [str(TOOLS[name].cached).encode() for name in (*KIND_NODE, "kind")]
    recipe = hashlib.sha256(b"\0".join([*files, *places, debian_base.reference().encode()])).hexdigest()
    return f"dtjob-kind-node:{TOOLS['kubelet'].version}-{recipe[:12]}"


def ensure(docker: Engine, say: Say = print) -> str:
    """The image's name, after building it unless Docker has it. Raises ImagesError or BinariesError."""
    name = reference()
    if docker("images", "--quiet", "--filter", f"reference={name}"):
        return name
    programs = binaries.find((*KIND_NODE, "kind"), say)
    say(f"building {name}: no registry is asked (5 minutes)")
    work = cache() / "kind"
    work.mkdir(parents=True, exist_ok=True)
    source = binaries.source("kind", say)
    try:
        base = debian_base.ensure(docker, work, say)
        [mirror] = debian_base.mirror()
        with tempfile.TemporaryDirectory(dir=work, prefix="build-") as directory:
            _Build(docker, programs, source, Path(directory), {"BASE": base, "MIRROR": mirror}).make(name)
    except (OSError, ValueError) as error:
        raise ImagesError(f"the image of kind's nodes cannot be made: {error}") from None
    return name


class _Build:
    """One build: `directory` has room for what is built, `arguments` are the Dockerfile's."""

    def __init__(
        self, docker: Engine, programs: dict[str, Path], source: Path, directory: Path, arguments: dict[str, str]
    ) -> None:
        self.docker = docker
        self.programs = programs
        self.directory = directory
        self.arguments = arguments
        listed = ("config", "images", "list", f"--kubernetes-version={TOOLS['kubelet'].version}")
        self.names = asked_for(Engine("kubeadm", (str(programs["kubeadm"]),))(*listed), source)
        self._fill(source)

    def make(self, name: str) -> None:
        """Build the node's image under this name."""
        for image in self.names:
            self._stage(next((ENTRY[word] for word in ENTRY if f"/{word}:" in image), "programs"), image)
        self._stage("nothing", "dtjob-kind-nothing:dev")
        self._stage("node-base", "dtjob-kind-base:dev")
        raw = "dtjob-kind-raw:dev"
        kind = Engine("kind", (str(self.programs["kind"]),))
        kind(
            "build",
            "node-image",
            str(self._tarball()),
            "--type=file",
            "--base-image=dtjob-kind-base:dev",
            f"--image={raw}",
        )
        self._stage("node", name, RAW=raw)

    def _fill(self, source: Path) -> None:
        """Lay out what the Dockerfile copies."""
        files = self.directory / "files"
        shutil.copytree(source / "images/base/files", files, copy_function=shutil.copyfile)
        for path in (files, *files.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)  # Go's cache is read-only
        for folder in ("programs", "runtime"):
            (self.directory / folder).mkdir()
        for name in KIND_NODE:
            folder = "runtime" if name in RUNTIME else "programs"
            shutil.copy2(self.programs[name], self.directory / folder / name)
        [tools] = [image for image in self.names if "/kindnetd:" in image]
        manifest = (HERE / "default-cni.yaml").read_text().replace("@IMAGE@", tools)
        (self.directory / "default-cni.yaml").write_text(manifest)

    def _stage(self, target: str, name: str, **arguments: str) -> None:
        given = [f"--build-arg={key}={value}" for key, value in {**self.arguments, **arguments}.items()]
        context = str(self.directory)
        self.docker(
            "build", "--quiet", *given, f"--file={HERE / 'Dockerfile'}", "--target", target, "--tag", name, context
        )

    def _tarball(self) -> Path:
        """What Kubernetes releases as its server, as far as kind reads it."""
        file = self.directory / "server.tar.gz"
        with tarfile.open(file, "w:gz", compresslevel=0) as tarball:  # kind unpacks it at once
            _add(tarball, "kubernetes/version", f"{TOOLS['kubelet'].version}\n".encode())
            for name in SERVER:
                tarball.add(self.programs[name], f"kubernetes/server/bin/{name}")
            for name in ARCHIVES:
                images = self.names if name == ARCHIVES[-1] else ["dtjob-kind-nothing:dev"]
                saved = self.directory / "saved.tar"
                self.docker("save", "--output", str(saved), *images)
                indexed = self.directory / "indexed.tar"
                index(saved, indexed, images)
                tarball.add(indexed, f"kubernetes/server/bin/{name}.tar")
        return file


def asked_for(listed: str, source: Path) -> list[str]:
    """The names of the images that a cluster needs: those that kubeadm lists, and those in kind's sources."""
    names = [line for line in listed.split() if "/pause:" not in line]
    for file, pattern in _CONSTANTS.items():
        names += re.findall(pattern, (source / file).read_text(), re.M)
    return names


def index(saved: Path, indexed: Path, names: Iterable[str]) -> None:
    """Copy an archive of images, with a list of their whole names as its first file.

    kind reads the names from there. Docker puts that list last and shortens names, and of its other list kind reads the
    first image only.
    """
    repositories: dict[str, dict[str, str]] = {}
    for name in names:
        repository, _, tag = name.rpartition(":")
        repositories.setdefault(repository, {})[tag] = ""
    with tarfile.open(saved) as source, tarfile.open(indexed, "w") as target:
        _add(target, "repositories", json.dumps(repositories).encode())
        for member in source:
            if member.name != "repositories":
                target.addfile(member, source.extractfile(member) if member.isfile() else None)


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    archive.addfile(member, io.BytesIO(content))
