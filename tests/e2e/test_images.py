# SPDX-License-Identifier: Apache-2.0
"""The two images, built from their Dockerfiles and run as a pod would run them."""

import json
import os
import re
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools import images
from tools.node.runc import Container

pytestmark = pytest.mark.timeout(1800)  # a first build fetches TensorFlow
OPERATOR_BYTES = 250_000_000
FOREIGN = 4242
"""A uid without a name and a home. The pods of tests/e2e/jobs run the trainer under 1000."""
TASK = {
    "DTJOB_NAME": "digits", "DTJOB_NAMESPACE": "default", "DTJOB_UID": "5f0c", "DTJOB_ROLE": "chief",
    "DTJOB_INDEX": "0", "DTJOB_ATTEMPT": "0", "DTJOB_STRATEGY": "Default", "DTJOB_CLUSTER_FILE": "/tmp/cluster.json",
    "DTJOB_CLUSTER_HASH": "hash", "DTJOB_RENDEZVOUS_ADDRESS": "127.0.0.1:2224", "DTJOB_STATUS_PORT": "2223",
    "DTJOB_GRACE_SECONDS": "30", "DTJOB_TERMINATION_LOG": "/tmp/last-words",
    "DTJOB_CHECKPOINT": '{"directory": "/tmp/checkpoints", "everySteps": 20}',
}  # fmt: skip


@pytest.fixture(scope="module")
def built() -> dict[str, images.Image]:
    try:
        return images.build()
    except images.ImagesError as error:
        pytest.skip(f"no images: {' '.join(str(error).split())}")


def container(image: images.Image) -> Iterator[Container]:
    builder = images.engine()
    if os.geteuid() != 0 or not shutil.which("runc"):
        pytest.skip("running an image without a cluster needs root and runc")
    running = Container(builder, image)
    try:
        yield running
    finally:
        running.close()


@pytest.fixture
def operator(built: dict[str, images.Image]) -> Iterator[Container]:
    yield from container(built["operator"])


@pytest.fixture
def trainer(built: dict[str, images.Image]) -> Iterator[Container]:
    yield from container(built["trainer"])


@pytest.mark.parametrize("name", images.IMAGES)
def test_archive_has_the_name_that_manifests_ask_for_and_oci_labels(name: str, built: dict[str, images.Image]) -> None:
    with tarfile.open(built[name].archive) as archive:
        index = archive.extractfile("manifest.json")
        assert index
        [manifest] = json.load(index)
        file = archive.extractfile(manifest["Config"])
        assert file
        config = json.load(file)["config"]
    assert {tag.rpartition("/")[2] for tag in manifest["RepoTags"]} == {f"dtjob-{name}:dev"}
    assert config["User"] == "1000:1000"
    labels = {key.removeprefix("org.opencontainers.image."): value for key, value in config["Labels"].items()}
    assert labels["version"] == "0.1.0"
    assert re.fullmatch(r"[0-9a-f]{40}(-dirty)?", labels["revision"])


def test_operator_image_is_small(built: dict[str, images.Image]) -> None:
    """The archive holds the layers uncompressed."""
    with tarfile.open(built["operator"].archive) as archive:
        assert sum(member.size for member in archive) < OPERATOR_BYTES


@pytest.mark.parametrize("uid", [1000, FOREIGN])
def test_operator_starts_from_a_read_only_file_system(uid: int, operator: Container, tmp_path: Path) -> None:
    done = operator.run(tmp_path, ["dtjob", "--version"], uid=uid, read_only=True)
    assert (done.returncode, done.stdout) == (0, "dtjob 0.1.0\n"), done.stderr


def test_a_uid_without_name_and_home_will_do(operator: Container, tmp_path: Path) -> None:
    """kopf asks for the user's name when it starts, and the kubeconfig is looked for in the home."""
    command = ["python3", "-c", "import getpass, pathlib; print(getpass.getuser(), pathlib.Path.home())"]
    assert operator.run(tmp_path, command, uid=FOREIGN, read_only=True).stdout == "dtjob /tmp\n"


def test_operators_own_command_is_the_operator(operator: Container, tmp_path: Path) -> None:
    done = operator.run(tmp_path, read_only=True)
    assert done.returncode == 2
    assert "no cluster is configured" in done.stderr


def test_operator_has_no_tensorflow(operator: Container, tmp_path: Path) -> None:
    done = operator.run(tmp_path, ["python3", "-c", "import tensorflow"], read_only=True)
    assert "No module named 'tensorflow'" in done.stderr


def test_trainer_runs_an_example_alone(trainer: Container, tmp_path: Path) -> None:
    done = trainer.run(tmp_path, ["python3", "examples/digits.py", "--epochs", "1"], uid=FOREIGN)
    assert done.returncode == 0, done.stderr
    assert "held-out accuracy" in done.stdout
    assert (trainer.root / "workspace/model.keras").stat().st_uid == FOREIGN


def test_trainer_supervises_a_task(trainer: Container, tmp_path: Path) -> None:
    (trainer.root / "tmp/cluster.json").write_text("{}")
    command = ["python3", "-m", "dtjob_trainer", "examples/digits.py", "--epochs=1"]
    done = trainer.run(tmp_path, command, uid=FOREIGN, environment=TASK)
    assert done.returncode == 0, done.stderr
    assert json.loads((trainer.root / "tmp/last-words").read_text())["step"] == 23
    assert (trainer.root / "tmp/checkpoints/DONE").is_file()


def test_nothing_of_this_machine_is_in_the_images(operator: Container, trainer: Container) -> None:
    """No pip configuration, no certificate beyond the distribution's, no name of the machine or its mirror."""
    own = set(certificates(Path("/usr/local/share/ca-certificates")))  # what the administrator added to this machine
    gone = ["etc/pip.conf", "root/.config", "root/.cache", "root/.pip", "etc/apt/sources.list"]
    mounted = ["etc/hostname", "etc/resolv.conf", "etc/hosts"]  # a build mounts over them; empty ones may stay
    for one in (operator, trainer):
        assert [name for name in gone if (one.root / name).exists()] == []
        assert [name for name in mounted if (one.root / name).exists() and (one.root / name).read_text()] == []
        assert [*(one.root / "run/secrets").glob("*")] == []
        assert not any("PIP_" in variable or "CERT" in variable for variable in one.config["Env"])
        trusted = set(certificates(one.root / "etc/ssl/certs/ca-certificates.crt"))
        assert len(trusted) > 100
        assert not own & trusted


def certificates(path: Path) -> Iterator[str]:
    """Every certificate in a file, or in the files below a directory, each as its bare text."""
    for file in path.rglob("*.crt") if path.is_dir() else [path]:
        for block in file.read_text().split("-----BEGIN CERTIFICATE-----")[1:]:
            yield "".join(block.split("-----END")[0].split())


def test_a_build_of_the_same_tree_writes_no_new_archive(built: dict[str, images.Image]) -> None:
    before = built["operator"].archive.stat().st_mtime_ns
    assert images.build(["operator"])["operator"].archive.stat().st_mtime_ns == before


def test_a_build_that_was_cut_off_is_not_in_the_next_ones_way(built: dict[str, images.Image]) -> None:
    """What it leaves is a container that holds an image, which `rmi --prune` then refuses to remove."""
    engine = images.engine()
    if engine.name != "buildah":
        pytest.skip(f"{engine.name} tidies its own store")
    engine("from", "--name", "cut-off", "--pull-never", built["operator"].reference)
    images.build(["operator"])
    assert "cut-off" not in engine("containers", "--format", "{{.ContainerName}}")


def test_operators_code_is_the_trees_and_compiled(operator: Container) -> None:
    inside = next(operator.root.glob("opt/venv/lib/python3*/site-packages/dtjob/plan/plan.py"))
    assert inside.read_bytes() == (images.ROOT / "operator/dtjob/plan/plan.py").read_bytes()
    assert [*(inside.parent / "__pycache__").glob("plan.*.pyc")]
