# SPDX-License-Identifier: Apache-2.0
"""What `dtjob run` trains: a manifest's job, or one that is made of a script and options."""

import os
from typing import Any

from dtjob.api.job import Job
from dtjob.bad_input import BadInput
from dtjob.crd.answers.problems import problems, to_job
from dtjob.local.processes.devices import devices_here
from dtjob.manifests import manifest_yaml
from dtjob.manifests.job_file import checked, read_manifest
from dtjob.manifests.script import Script, is_script
from dtjob.manifests.script_job import manifest
from dtjob.manifests.script_settings import said_of, with_settings
from dtjob.manifests.warnings import said_in_vain

OFTEN = {"everyEpochs": 1, "everySeconds": 30}
"""How often the run of a script is saved on this machine. The defaults are for a cluster, and for longer runs."""


def job_of(script: Script) -> tuple[Job, list[str]]:
    """The job to train, and what its manifest says in vain. Raises BadInput with a line for each thing that is
    wrong."""
    if is_script(script.file):
        made = _made(script)
        return to_job(made), said_in_vain(made)
    _check_no_script(script)
    written = read_manifest(script.file)
    return checked(written, str(script.file)), said_in_vain(written)


def printed(script: Script, *, as_json: bool) -> str:
    """The manifest of a script's job, for `--dry-run`. Raises BadInput."""
    if not is_script(script.file):
        raise BadInput(f"--dry-run: {script.file} is a manifest; dtjob explain {script.file} shows what it makes")
    return manifest_yaml.printed([_made(script)], as_json=as_json)


def words(script: Script) -> list[str]:
    """The arguments of the command line that give this script. Values of variables are left out: they may be secret."""
    options: list[str] = []
    given = (script.strategy, script.workers, script.ps, script.gpus, script.name)
    for name, value in zip(("--strategy", "--workers", "--ps", "--gpus", "--name"), given, strict=True):
        options += [] if value is None else [name, str(value)]
    options += ["--evaluator"] if script.evaluator else []
    variables = [f"{variable.partition('=')[0]}=…" for variable in script.env]
    for name, values in (("-e", variables), ("--set", script.settings)):
        options += [word for value in values for word in (name, value)]
    options += [] if script.checkpoint is None else ["--checkpoint", script.checkpoint]
    return [str(script.file), *options, *(["--", *script.arguments] if script.arguments else [])]


def _made(script: Script) -> dict[str, Any]:
    """The manifest of a script's job. Raises BadInput with a line for each thing that is wrong."""
    if not script.file.is_file():
        raise BadInput(f"{script.file}: is no file; give a Python script or a manifest")
    made = manifest(script, len(devices_here(os.environ)))
    if "volume" in made["spec"]["checkpoint"]["storage"]:  # a bucket is slow
        made["spec"]["checkpoint"] |= OFTEN
    made = with_settings(made, script.settings)
    if found := problems(made):
        raise BadInput(*(said_of(problem, script.settings, str(script.file)) for problem in found))
    return made


def _check_no_script(script: Script) -> None:
    """Raise BadInput for options of a script beside a manifest, which says these things itself."""
    if script != Script(script.file):
        raise BadInput(
            f"{script.file}: options and arguments of a script go with a .py file; write them in the manifest instead"
        )
