# SPDX-License-Identifier: Apache-2.0
"""Jobs that have only so much time: to start, to train, and to stay when they have ended."""

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from dtjob.api.job import KIND
from dtjob.api.phase import ENDED
from dtjob.objects.manifest import Manifest
from tests.unit.operator.simulation.life.sizes import Sizes

DEADLINES: tuple[dict[str, Any], ...] = (
    {"startDeadlineSeconds": 30},
    {"startDeadlineSeconds": 900},
    {"activeDeadlineSeconds": 100},
    {"activeDeadlineSeconds": 7200},
    {"ttlSecondsAfterFinished": 0},
    {"startDeadlineSeconds": 300, "activeDeadlineSeconds": 900, "ttlSecondsAfterFinished": 60},
)
FIELDS = frozenset(name for one in DEADLINES for name in one)


class Deadlines(Sizes):
    """Deadlines and times to live are changed at any moment."""

    @precondition(lambda self: self.names)
    @rule(data=st.data(), deadlines=st.sampled_from(DEADLINES))
    def deadlines_are_set(self, data: st.DataObject, deadlines: dict[str, Any]) -> None:
        """Those that are over by now end it at once."""
        self.set_deadlines(data.draw(st.sampled_from(self.names)), deadlines)

    def set_deadlines(self, name: str, deadlines: dict[str, Any]) -> None:
        """kubectl edit: these, and no others."""
        self.world.cluster.lifetimes.begin_anew(self.uid(name))

        def change(job: Manifest) -> None:
            job["spec"] = {field: value for field, value in job["spec"].items() if field not in FIELDS} | deadlines
            job["metadata"]["generation"] += 1

        self.world.cluster.change(KIND, name, change)

    def deadlines_are_lifted(self) -> None:
        """No job has any."""
        for name in self.names:
            if FIELDS & set(self.world.cluster.objects[KIND, name]["spec"]):
                self.set_deadlines(name, {})

    def outlive_its_deadline(self, name: str) -> None:
        """It fails though it was suspended meanwhile and nothing happens to it, and goes when its time has come."""
        seconds = int((self.status(name).get("active") or {}).get("seconds", 0))
        since = self.world.now()
        self.set_deadlines(name, {"activeDeadlineSeconds": 10_000_000})
        self.world.run(10)
        assert self.status(name)["phase"] == "Running"
        self.set_suspend(name, True)
        self.world.run(1)
        self.kubelets_end_what_is_deleted()
        self.world.run(5000)
        assert self.status(name)["phase"] == "Suspended"
        lasted = int(self.status(name)["active"]["seconds"])
        assert lasted >= seconds
        self.set_deadlines(name, {"activeDeadlineSeconds": lasted + 100, "ttlSecondsAfterFinished": 500})
        self.set_suspend(name, False)
        self.world.run(60)
        self.all_run()
        assert self.goes_on(name), f"{self.status(name)} since {since}"
        self.world.run(60)
        status = self.status(name)
        assert (status["phase"], status["reason"]) == ("Failed", "DeadlineExceeded")
        assert status["phase"] in ENDED
        uid = self.uid(name)
        self.kubelets_end_what_is_deleted()
        self.world.run(420)
        assert not [one for one in self.alive() if self.facts(one).job_uid == uid], "it was cut off, and pods run"
        assert name in self.names
        self.world.run(100)
        assert name not in self.names, "it stays for longer than it says"
