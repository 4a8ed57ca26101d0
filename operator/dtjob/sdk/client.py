# SPDX-License-Identifier: Apache-2.0
"""Runs jobs from Python, here or in a cluster."""

import inspect
import json
import tempfile
import textwrap
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from dtjob.api.job import API_VERSION, KIND, Job
from dtjob.bad_input import BadInput
from dtjob.client.cluster import Cluster, connect
from dtjob.client.verbs.submit import create, of_namespace, submit
from dtjob.crd.answers.problems import problems
from dtjob.manifests.script import Script, Submission
from dtjob.manifests.submitted import made
from dtjob.manifests.warnings import said_in_vain, warnings_of
from dtjob.sdk.local_job import LocalJob
from dtjob.sdk.remote_job import RemoteJob
from dtjob.sdk.started_job import StartedJob


class Client:
    """Jobs of one namespace of a cluster, found as kubectl finds it, or of this machine.

    - here: run jobs as processes of this machine. No cluster is asked.
    - namespace, kubeconfig, context: as the options of the command line.

    `with Client(…) as client:` closes it at the end: calls end, and jobs of this machine are saved and end.
    """

    def __init__(
        self,
        *,
        here: bool = False,
        namespace: str | None = None,
        kubeconfig: Path | str | None = None,
        context: str | None = None,
    ) -> None:
        self._cluster: Cluster | None = None
        self._namespace = namespace
        self._jobs: list[LocalJob] = []
        if not here:
            self._cluster = connect(str(kubeconfig) if kubeconfig else None, context, namespace)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all calls to the cluster. Save and end the jobs of this machine; the same jobs resume."""
        if self._cluster is not None:
            self._cluster.connection.end()
        for job in self._jobs:
            job.close()

    def run(self, job: Job) -> StartedJob:
        """Create the job, or train it here. It goes to its own namespace, if it has one.

        Raises BadInput if it is wrong or this client is for another namespace, and Refused if there is one of its name.
        """
        dumped = job.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude={"status"})
        manifest = {**dumped, "apiVersion": API_VERSION, "kind": KIND}
        if found := problems(manifest):
            raise BadInput(*map(str, found))
        _warn(said_in_vain(manifest) if self._cluster is None else warnings_of(job, manifest))
        if self._cluster is None:
            return self._here(manifest)
        cluster = of_namespace(self._cluster, manifest, self._namespace)
        manifest["metadata"]["namespace"] = cluster.namespace
        stored = create(cluster, manifest)
        return RemoteJob(cluster, str(stored["metadata"]["name"]))

    def train(
        self,
        function: Callable[..., Any],
        arguments: Mapping[str, Any] | None = None,
        *,
        strategy: str | None = None,
        workers: int | None = None,
        ps: int | None = None,
        evaluator: bool = False,
        gpus: int | None = None,
        cpu: int | str | None = None,
        memory: str | None = None,
        env: Mapping[str, str] | None = None,
        env_from_secrets: Sequence[str] = (),
        mounts: Sequence[str] = (),
        settings: Mapping[str, Any] | None = None,
        image: str | None = None,
        claim: str | None = None,
        claim_size: str | None = None,
        checkpoint: str | None = None,
        requirements: str | None = None,
        name: str | None = None,
        queue: str | None = None,
    ) -> StartedJob:
        """Train with a function as the program. It is sent as source, so it imports what it needs by itself.

        - arguments: of the function, by name.
        - requirements: the content of a requirements file.
        - mounts: claims as CLAIM:/PATH.
        - settings: fields of the manifest by path, such as {"spec.failurePolicy.maxRestarts": 3}.
        - the others: as the options of `dtjob submit`.

        Raises BadInput if the function cannot stand alone or an option is wrong.
        """
        file = _kept(as_script(function, arguments or {}), f"{function.__name__}.py")
        more = None if requirements is None else _kept(requirements, "requirements.txt")
        script = Script(
            file,
            (),
            *(strategy, workers, ps, evaluator, checkpoint, gpus, name),
            cpu=None if cpu is None else str(cpu),
            memory=memory,
            env=tuple(f"{variable}={value}" for variable, value in (env or {}).items()),
            secrets=tuple(env_from_secrets),
            mounts=tuple(mounts),
            settings=tuple(f"{path}={_as_text(value)}" for path, value in (settings or {}).items()),
        )
        submission = Submission(script, None, more, image, claim, queue, self._namespace, claim_size)
        one = made(submission)
        if self._cluster is None:
            program = one.job["spec"]["program"]
            program["entrypoint"] = str(file)
            for sent in ("source", "requirements"):
                program.pop(sent, None)
            return self._here(one.job)
        _warn(one.warnings)
        stored = submit(self._cluster, one)
        return RemoteJob(self._cluster, str(stored["metadata"]["name"]))

    def get(self, name: str) -> RemoteJob:
        """The job of this name. Raises NotFound if there is none, and BadInput without a cluster."""
        cluster = self._asked()
        cluster.get(KIND, name)
        return RemoteJob(cluster, name)

    def list(self) -> list[RemoteJob]:
        """The jobs of the namespace. Raises BadInput without a cluster."""
        cluster = self._asked()
        return [RemoteJob(cluster, str(one["metadata"]["name"])) for one in cluster.list(KIND)]

    def _here(self, manifest: dict[str, Any]) -> LocalJob:
        """The job of this manifest, started on this machine."""
        self._jobs.append(LocalJob(manifest))
        return self._jobs[-1]

    def _asked(self) -> Cluster:
        if self._cluster is None:
            raise BadInput("this client runs jobs on this machine; make one without here=True")
        return self._cluster


def _warn(texts: Sequence[str]) -> None:
    """Say what a job may not be meant to do, where the user's program calls this client."""
    for text in texts:
        warnings.warn(text, stacklevel=3)


def _as_text(value: Any) -> str:
    """A value as it stands behind --set PATH=."""
    return value if isinstance(value, str) else json.dumps(value)


def _kept(text: str, name: str) -> Path:
    """A file of this name with this content, which stays as long as this machine keeps temporary files."""
    file = Path(tempfile.mkdtemp(prefix="dtjob-")) / name
    file.write_text(text)
    return file


def as_script(function: Callable[..., Any], arguments: Mapping[str, Any]) -> str:
    """A script that calls the function with these arguments. Raises BadInput if it cannot stand alone."""
    name = getattr(function, "__name__", "")
    if not inspect.isfunction(function) or not name.isidentifier():
        raise BadInput("train takes a function that is defined with def")
    if function.__closure__:
        names = ", ".join(function.__code__.co_freevars)
        raise BadInput(f"{name}: uses {names} of the function around it; give them as arguments")
    try:
        source = textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError):
        raise BadInput(f"{name}: its source cannot be read; define it in a file or in a cell") from None
    try:
        text = json.dumps(dict(arguments))
    except TypeError as error:
        raise BadInput(f"{name}: arguments must be numbers, texts, lists and mappings: {error}") from None
    call = f"{name}(**json.loads({text!r}))"
    return f'import json\n\n{source}\n\nif __name__ == "__main__":\n    {call}\n'
