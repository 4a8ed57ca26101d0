# SPDX-License-Identifier: Apache-2.0
"""The two images, built from their Dockerfiles into archives that Docker, kind and containerd load.

    python tools/images.py [operator|trainer|all]    # builds them and prints where they are

Docker or podman builds where one of them answers. Elsewhere root builds with buildah, which apt installs if it is
missing. The base is that of the Dockerfiles, of `--base`, or of the variable DTJOB_IMAGE_BASE. With buildah, and if
no registry has the Dockerfiles' base, debootstrap makes one (`debian_base.py`). All that is kept lies below
`${XDG_CACHE_HOME:-~/.cache}/dtjob/`: the archives in `images/`, buildah's store in `buildah/`.

pip's configuration and the machine's CA certificates are given to the builds as secrets: mounted while pip runs,
kept in no layer. Standard library only.
"""

import argparse
import configparser
import contextlib
import fcntl
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tools import debian_base
from tools.programs import cache

ROOT = Path(__file__).resolve().parents[1]
CA_BUNDLES = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem")
CA_IN_BUILD = "/run/secrets/ca"
PIP_SETTINGS = ("index-url", "extra-index-url", "trusted-host", "proxy", "timeout", "default-timeout", "retries")
"""Settings of pip that hold inside a build too; paths of this machine do not."""
PACKAGES = ("buildah", "debootstrap")

Say = Callable[[str], None]


class ImagesError(Exception):
    """An image cannot be built; the message says what to do."""


@dataclass(frozen=True)
class Image:
    """One of the two images."""

    name: str
    dockerfile: str

    @property
    def reference(self) -> str:
        """The name by which manifests and charts ask for it."""
        return f"dtjob-{self.name}:dev"

    @property
    def base(self) -> str:
        """The base that its Dockerfile names."""
        (base,) = re.findall(r"^ARG BASE=(\S+)$", (ROOT / self.dockerfile).read_text(), re.M)
        return str(base)

    @property
    def archive(self) -> Path:
        """The file that `docker load`, `kind load image-archive` and `ctr images import` take."""
        return cache() / "images" / f"{self.name}.tar"


IMAGES = {
    image.name: image for image in (Image("operator", "Dockerfile"), Image("trainer", "trainer_image/Dockerfile"))
}


@dataclass(frozen=True)
class Engine:
    """A program that builds images: Docker, podman or buildah, with the arguments that every call of it takes."""

    name: str
    command: tuple[str, ...]

    def __call__(self, *arguments: str) -> str:
        """Run one command and return what it printed. Raises ImagesError with its last lines where it fails."""
        command = [*self.command, *arguments]
        environment = {**os.environ, "DOCKER_BUILDKIT": "1"}
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            last = "\n".join((done.stdout + done.stderr).strip().splitlines()[-30:])
            raise ImagesError(f"`{' '.join(command)}` ended with {done.returncode}:\n{last}")
        return done.stdout.strip()

    def build(self, image: Image, build_arguments: dict[str, str], secrets: dict[str, Path]) -> str:
        """Build the image under its reference and return its id."""
        options = ["--file", image.dockerfile]
        for name, value in build_arguments.items():
            options += ["--build-arg", f"{name}={value}"]
        for name, file in secrets.items():
            options += ["--secret", f"id={name},src={file}"]
        if self.name == "buildah":
            options += ["--layers", "--isolation", "chroot", "--network", "host"]
        self("build", *options, "--tag", image.reference, ".")
        if self.name == "buildah":
            # The store is ours: what no tag leads to can go. So the first stage, where the next build starts, gets one.
            self("build", *options, "--tag", f"dtjob-{image.name}-code:dev", "--target", "code", ".")
            self("rm", "--all")  # the working container of a build that was cut off; the lock says that none is at work
            self("rmi", "--prune")
        return self("inspect", "--type", "image", "--format", self._id_field, image.reference)

    @property
    def _id_field(self) -> str:
        return "{{.FromImageID}}" if self.name == "buildah" else "{{.Id}}"

    def save(self, image: Image, file: Path) -> None:
        """Write the image to an archive."""
        if self.name == "docker":
            self("save", "--output", str(file), image.reference)
        else:  # by push, as their own `save` would call the image localhost/…
            self("push", "--quiet", image.reference, f"docker-archive:{file}:{image.reference}")
        file.chmod(0o644)  # Docker lets only its user read it

    def has(self, reference: str) -> bool:
        """Whether an image is here, or a registry has it, from which it is then pulled."""
        for arguments in (("image", "inspect"), ("pull", "--quiet")):
            with contextlib.suppress(ImagesError):
                return bool(self(*arguments, reference))
        return False


def engine(say: Say = print) -> Engine:
    """Docker or podman where one answers, else buildah. Raises ImagesError where there is none and none can be had."""
    for name in ("docker", "podman"):
        if shutil.which(name) and not subprocess.run([name, "info"], capture_output=True, check=False).returncode:
            return Engine(name, (name,))
    missing = [package for package in PACKAGES if not shutil.which(package)]
    if os.geteuid() != 0 or (missing and not shutil.which("apt-get")):
        raise ImagesError(
            "no image can be built here: neither Docker nor podman answers, and building without them needs root, "
            f"{' and '.join(PACKAGES)}"
        )
    if missing:
        say(f"  installing {' and '.join(missing)} with apt-get, as neither Docker nor podman answers")
        apt = Engine("apt-get", ("apt-get", "-qq"))
        apt("update")
        apt("install", "--yes", "--no-install-recommends", *missing)
    store = cache() / "buildah"
    return Engine("buildah", ("buildah", "--root", str(store / "root"), "--runroot", str(store / "run")))


def build(names: Iterable[str] = IMAGES, base: str | None = None, say: Say = print) -> dict[str, Image]:
    """Build the named images and write their archives; quick where nothing changed.

    `base` is another base image than the Dockerfiles' own, or than Debian's by debootstrap. Raises ImagesError.
    """
    base = base or os.environ.get("DTJOB_IMAGE_BASE")
    wanted = [IMAGES[name] for name in names]
    directory = cache() / "images"
    directory.mkdir(parents=True, exist_ok=True)
    with _lock(directory, say), tempfile.TemporaryDirectory(prefix="dtjob-secrets-") as secrets:
        builder = engine(say)
        say(f"building {' and '.join(image.reference for image in wanted)} with {builder.name}")
        if not base and (builder.name == "buildah" or not all(builder.has(image.base) for image in wanted)):
            try:
                base = debian_base.ensure(builder, directory, say)
            except OSError as error:
                raise ImagesError(f"the base image cannot be made: {error}") from None
        files = _secrets(Path(secrets))
        for image in wanted:
            begin = time.monotonic()
            identity = builder.build(image, _build_arguments(base), files)
            built = time.monotonic()
            _save(builder, image, identity)
            say(f"  {image.reference}: built in {built - begin:.1f} s, archived in {time.monotonic() - built:.1f} s")
    return {image.name: image for image in wanted}


def _build_arguments(base: str | None) -> dict[str, str]:
    version = re.search(r'^__version__ = "(.+)"', (ROOT / "operator/dtjob/__init__.py").read_text(), re.M)
    arguments = {"VERSION": version[1] if version else "dev"}
    with contextlib.suppress(OSError, subprocess.CalledProcessError):
        command = ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
        arguments["REVISION"] = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout.strip()
    if base:
        arguments["BASE"] = base
    return arguments


def _save(builder: Engine, image: Image, identity: str) -> None:
    """Write the archive, unless it holds this very image already."""
    known = image.archive.with_suffix(".id")
    if image.archive.exists() and known.exists() and known.read_text() == identity:
        return
    unfinished = image.archive.with_name(f".{image.archive.name}")
    unfinished.unlink(missing_ok=True)
    known.unlink(missing_ok=True)
    builder.save(image, unfinished)
    unfinished.rename(image.archive)
    known.write_text(identity)


def _secrets(directory: Path) -> dict[str, Path]:
    """Files for the Dockerfiles' secrets: pip's configuration, and the CA certificates that this machine trusts."""
    files = {}
    named = [os.environ[name] for name in ("PIP_CERT", "SSL_CERT_FILE") if os.environ.get(name)]
    bundle = next((path for path in map(Path, (*named, *CA_BUNDLES)) if path.is_file()), None)
    if bundle:
        files["ca"] = bundle
    settings = pip_settings()
    if bundle:
        settings["cert"] = CA_IN_BUILD
    if settings:
        parser = configparser.RawConfigParser()
        parser["global"] = settings
        text = io.StringIO()
        parser.write(text)
        files["pip"] = directory / "pip.conf"
        files["pip"].touch(0o600)
        files["pip"].write_text(text.getvalue())
    return files


def pip_settings() -> dict[str, str]:
    """Where pip finds packages on this machine: its files' global settings, overridden by its environment."""
    home = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    parser = configparser.RawConfigParser()
    named = os.environ.get("PIP_CONFIG_FILE")
    files = ["/etc/pip.conf", Path.home() / ".pip" / "pip.conf", home / "pip" / "pip.conf", *([named] if named else [])]
    parser.read([] if named == os.devnull else files)
    found = dict(parser["global"]) if parser.has_section("global") else {}
    for key in PIP_SETTINGS:
        if value := os.environ.get("PIP_" + key.upper().replace("-", "_")):
            found[key] = value
    return {key: value for key, value in found.items() if key in PIP_SETTINGS}


@contextlib.contextmanager
def _lock(directory: Path, say: Say) -> Iterator[None]:
    """Only one run builds at a time; the kernel gives the lock back when its holder dies."""
    with (directory / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another run is building images: waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def main() -> int:
    """Build what the command line asks for and print one line for each image: its name and its archive."""
    parser = argparse.ArgumentParser(description="Build dtjob's images into archives.")
    parser.add_argument("image", nargs="?", choices=[*IMAGES, "all"], default="all")
    parser.add_argument("--base", help="another base image: Python 3.11 to 3.13, its venv module, CA certificates")
    options = parser.parse_args()
    names = list(IMAGES) if options.image == "all" else [options.image]
    try:
        images = build(names, options.base, say=lambda line: print(line, file=sys.stderr, flush=True))
    except ImagesError as error:
        print(error, file=sys.stderr)
        return 1
    for image in images.values():
        print(f"{image.reference}\t{image.archive}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
