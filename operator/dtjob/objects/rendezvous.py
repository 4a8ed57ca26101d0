"""The port of the rendezvous, where a job's supervisors agree on when training starts.

It is none that a user chooses or the operator asks: the job's NetworkPolicy lets only its own pods reach it, while the
status port is open to the operator and to whoever scrapes it.
"""

from __future__ import annotations

from collections.abc import Iterator

from dtjob.api.job import Job

RENDEZVOUS_PORT = 2224
"""Where nothing else of the job has it; else the next one that is free."""
STATUS_FIELD = "rendezvousPort"


def rendezvous_port(job: Job) -> int | None:
    """The port, None where the rendezvous is on the status port: in jobs that an earlier operator began, as all tasks
    of a job must look for it in the same place."""
    if job.spec.program is None:
        return None
    if job.status.get("phase"):
        port = job.status.get(STATUS_FIELD)
        return port if isinstance(port, int) else None
    taken = {job.spec.network.port, job.spec.network.status_port, *_container_ports(job)}
    return next(port for port in range(RENDEZVOUS_PORT, 65536) if port not in taken)


def _container_ports(job: Job) -> Iterator[int]:
    """Ports that the templates' containers name: sidecars share the pod's address, and init containers can be such."""
    replicas = job.spec.replicas
    for replica in (replicas.chief, replicas.worker, replicas.ps, replicas.evaluator):
        spec = replica.template.spec if replica and replica.template else None
        for container in [*(spec.containers or ()), *(spec.init_containers or ())] if spec else ():
            yield from (port.container_port for port in container.ports or ())
