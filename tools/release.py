# SPDX-License-Identifier: Apache-2.0
"""Everything that a release needs, in build/release: wheels, images, the chart, plain YAML, a JSON schema, an SBOM and
checksums.

    python -m tools.release [--without-images]

Images are those of this machine's architecture. helm is needed. cyclonedx-py, which writes the SBOM, is installed into
a virtual environment below build/.
"""

import argparse
import hashlib
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

from dtjob import __version__
from tools import chart
from tools.images import IMAGES

ROOT = Path(__file__).resolve().parents[1]
RELEASE = ROOT / "build" / "release"
FILES = ("crds/distributedtrainingjobs.yaml", "crds/json-schema/distributedtrainingjob_v1beta1.json")
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
SUMS = "SHA256SUMS"


def runtime(roots: Iterable[str]) -> dict[str, str]:
    """Name and version of these distributions and of all that they need at run time, as they are installed here.

    A root may name extras: `dtjob-trainer[cpu]`. A requirement that is not installed (another platform's) is left out.
    """
    found: dict[str, str] = {}
    waiting = list(roots)
    while waiting:
        name, extras = _parsed(waiting.pop())
        try:
            distribution = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue
        known = distribution.metadata["Name"]
        if known in found and not extras:
            continue
        found[known] = distribution.version
        for requirement in distribution.requires or ():
            needed, _, marker = requirement.partition(";")
            extra = re.search(r"""extra\s*==\s*["']([^"']+)["']""", marker)
            if extra is None or extra[1] in extras:
                waiting.append(needed)
    return found


def _parsed(requirement: str) -> tuple[str, set[str]]:
    match = re.match(r"\s*([A-Za-z0-9._-]+)\s*(?:\[([^\]]*)\])?", requirement)
    assert match, requirement
    return match[1], {one.strip() for one in (match[2] or "").split(",") if one.strip()}


def sums(directory: Path) -> str:
    """The file SHA256SUMS of a directory, as `sha256sum --check` reads it."""
    files = sorted(file for file in directory.iterdir() if file.is_file() and file.name != SUMS)
    return "".join(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files)


def wheels() -> None:
    """The wheels of both packages, without their dependencies."""
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-index", "--no-build-isolation"]
    for folder in (ROOT, ROOT / "trainer_image"):
        left = folder / "build" / "lib"  # modules of an earlier build would come along
        shutil.rmtree(left, ignore_errors=True)
        subprocess.run([*command, f"--wheel-dir={RELEASE}", str(folder)], check=True)
        shutil.rmtree(left, ignore_errors=True)


def images() -> None:
    """The archives of both images, built anew if their files changed."""
    subprocess.run([sys.executable, str(ROOT / "tools" / "images.py")], check=True)
    architecture = ARCHITECTURES.get(platform.machine(), platform.machine())
    for image in IMAGES.values():
        shutil.copyfile(image.archive, RELEASE / f"dtjob-{image.name}-{__version__}-{architecture}.tar")


def charts(helm: Path) -> None:
    """The chart's package, and its objects as plain YAML."""
    subprocess.run([str(helm), "package", str(chart.CHART), f"--destination={RELEASE}"], check=True)
    (RELEASE / "dtjob.yaml").write_text(chart.manifest(helm))


def bill_of_materials() -> None:
    """What both packages need at run time, in CycloneDX."""
    tool = ROOT / "build" / "release-tools"
    if not (tool / "bin" / "cyclonedx-py").exists():
        subprocess.run([sys.executable, "-m", "venv", str(tool)], check=True)
        python = str(tool / "bin" / "python")
        constraints = f"--constraint={ROOT / 'constraints.txt'}"
        subprocess.run([python, "-m", "pip", "install", "--quiet", constraints, "cyclonedx-bom>=7,<8"], check=True)
    for name, root in (("operator", "dtjob[operator]"), ("trainer", "dtjob-trainer[cpu]")):
        needed = sorted(runtime([root]).items(), key=lambda one: one[0].lower())
        listed = ROOT / "build" / f"sbom-{name}.txt"
        listed.write_text("".join(f"{package}=={version}\n" for package, version in needed))
        made = RELEASE / f"dtjob-{name}-{__version__}.cdx.json"
        command = [str(tool / "bin" / "cyclonedx-py"), "requirements", str(listed), f"--output-file={made}"]
        subprocess.run([*command, "--output-format=JSON", "--output-reproducible"], check=True)


def main() -> None:
    """Make all of it, or say what is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--without-images", action="store_true", help="leave the images out: some GB, many minutes")
    given = parser.parse_args()
    helm = chart.find_helm()
    if helm is None:
        parser.exit(1, "no helm: install it, or name it by DTJOB_HELM\n")
    shutil.rmtree(RELEASE, ignore_errors=True)
    RELEASE.mkdir(parents=True)
    wheels()
    charts(helm)
    for file in FILES:
        shutil.copyfile(ROOT / file, RELEASE / Path(file).name)
    bill_of_materials()
    if not given.without_images:
        images()
    (RELEASE / SUMS).write_text(sums(RELEASE))
    print(f"{RELEASE} has what the tag v{__version__} needs:")
    print("".join(f"  {file.name}\n" for file in sorted(RELEASE.iterdir())), end="")


if __name__ == "__main__":
    main()
