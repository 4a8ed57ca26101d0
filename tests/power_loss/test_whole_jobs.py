# SPDX-License-Identifier: Apache-2.0
"""Whole jobs (`dtjob run`) whose machine loses its power: what is left is restored, and training goes on.

Slow: `make power-loss`. DTJOB_POWER_LOSSES says how often on all kinds of disk together (12).
"""

import os
import random
from pathlib import Path

import pytest

from tests.power_loss.disk import Kind
from tests.power_loss.mounted import MountedDisk, NotMountedError
from tests.trainer.support.local_runs import LocalRun, Statuses, written_job

LOSSES = int(os.environ.get("DTJOB_POWER_LOSSES", "12"))
PROGRAM = "tests/trainer/programs/weights_told.py"
INTERVAL, EPOCHS = 10, 7
"""Steps between checkpoints; an epoch has 29 steps."""
LAST, LOST_AFTER = EPOCHS * 29, 140
"""Steps of the whole job, and those after which the record ends."""
LONGEST_SECONDS = 600.0
"""Of one start, beside much other work."""
TO_THE_END = 4
"""One in so many restarted jobs trains to its end."""


def job(file: Path, told: Path) -> Path:
    return written_job(
        file,
        "power",
        strategy="OneDevice",
        program={"entrypoint": PROGRAM, "args": [str(told), str(EPOCHS)]},
        replicaSpecs={"chief": {}},
        checkpoint={"storage": {"volume": {"emptyDir": {}}}, "everySteps": INTERVAL, "maxToKeep": 1},
    )


def checksums(told: Path) -> dict[int, str]:
    """What a program has told, by step. A step that is trained twice has the same checksum both times."""
    found: dict[int, str] = {}
    for line in told.read_text().splitlines() if told.exists() else ():
        step, checksum = line.split()
        assert found.setdefault(int(step), checksum) == checksum, f"step {step} is another one the second time"
    return found


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[int, str]:
    """The checksums of all steps of a job that nothing disturbs."""
    directory = tmp_path_factory.mktemp("undisturbed")
    with LocalRun(job(directory / "job.yaml", directory / "told"), directory / "work") as run:
        code, _ = run.end(LONGEST_SECONDS)
        assert code == 0, run.told
    found = checksums(directory / "told")
    assert sorted(found) == list(range(1, LAST + 1))
    return found


Known = list[tuple[int, int, int]]
"""The number of changes by which a step was done, and a checkpoint was reported: (changes, step, checkpoint)."""


def recorded(file: Path, told: Path, disk: MountedDisk) -> Known:
    """Train until LOST_AFTER steps are done, and kill all."""
    known: Known = [(0, 0, 0)]
    with LocalRun(file, disk.where / "work") as run:

        def enough(now: Statuses) -> bool:
            saved = (now.get("chief-0", {}).get("checkpoint") or {}).get("step", 0)
            step = max(checksums(told), default=0)
            known.append((disk.changes(), step, saved))
            return step >= LOST_AFTER

        run.wait_until(enough, f"step {LOST_AFTER}", LONGEST_SECONDS)
    return known


def restored(file: Path, told: Path, disk: MountedDisk, to_the_end: bool) -> int:
    """Start the job on what the power loss has left, until it trains or to its end; the step that it has restored."""
    told.unlink(missing_ok=True)
    with LocalRun(file, disk.where / "work") as run:
        run.wait_until(lambda _: bool(checksums(told)), "the first step", LONGEST_SECONDS)
        if to_the_end:
            code, _ = run.end(LONGEST_SECONDS)
            assert code == 0, run.told
    return min(checksums(told)) - 1


@pytest.mark.slow
@pytest.mark.timeout(LONGEST_SECONDS * (LOSSES + 3))
@pytest.mark.parametrize("kind", list(Kind))
def test_after_a_power_loss_a_job_continues_from_a_whole_checkpoint_at_most_two_intervals_back(
    kind: Kind, tmp_path: Path, undisturbed: dict[int, str]
) -> None:
    told, moments, lost = tmp_path / "told", random.Random(0), []
    file = job(tmp_path / "job.yaml", told)
    try:
        mounted = MountedDisk(tmp_path / "disk", kind)
    except NotMountedError:
        pytest.skip("no file system can be mounted here: that needs Linux, root and /dev/fuse")
    with mounted as disk:
        known = recorded(file, told, disk)
        assert checksums(told).items() <= undisturbed.items()
        began = next(changes for changes, step, _ in known if step)
        for seed in range(-(-LOSSES // len(Kind))):
            at = moments.randint(began, known[-1][0])
            disk.lose(at, seed)
            _, step, saved = [one for one in known if one[0] <= at][-1]
            found = restored(file, told, disk, to_the_end=seed % TO_THE_END == 0)
            what = f"lost after change {at}, seed {seed}: step {step} and checkpoint {saved} were reported"
            assert saved <= found, f"{what}, {found} is restored"
            assert step - found <= 2 * INTERVAL, f"{what}, {found} is restored"
            assert checksums(told).items() <= undisturbed.items(), f"{what}, and what is restored is torn"
            lost.append(step - found)
            print(f"{what}, {found} was restored", flush=True)
    print(f"{kind}: {len(lost)} power losses, {sum(lost) / len(lost):.1f} steps lost on average, {max(lost)} at most")
