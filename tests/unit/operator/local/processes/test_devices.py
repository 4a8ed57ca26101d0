# SPDX-License-Identifier: Apache-2.0
"""Which GPUs the tasks of a run see."""

from dtjob.local.processes.devices import devices_here, has_tpu, shares, wanted
from dtjob.objects import topology
from dtjob.objects.pod.pod import pod
from tests.unit.operator.builders import job


def pods(gpus, **roles):
    limits = {"resources": {"limits": {"nvidia.com/gpu": gpus}}}
    made = job(replicaSpecs={"worker": {"replicas": 2, **limits}, **roles})
    return [pod(made, task, 0) for task in topology.tasks(made)]


def test_each_task_that_asks_for_gpus_has_its_own_and_the_others_see_none():
    found = pods(2, chief={})
    assert wanted(found) == 4
    assert shares(found, ["0", "1", "2", "3", "4"]) == {"chief-0": "-1", "worker-0": "0,1", "worker-1": "2,3"}


def test_where_there_are_too_few_all_are_shared():
    assert shares(pods(2, chief={}), ["0", "1", "2"]) == {}


def test_the_tasks_of_a_job_that_asks_for_none_are_left_alone():
    made = job(replicaSpecs={"worker": {"replicas": 2}, "chief": {}})
    found = [pod(made, task, 0) for task in topology.tasks(made)]
    assert (wanted(found), shares(found, ["0"])) == (0, {})


def test_the_gpus_of_this_machine_are_those_of_the_driver_or_of_the_users_choice(tmp_path):
    for number in range(3):
        (tmp_path / f"0000:0{number}:00.0").mkdir()
    assert devices_here({}, tmp_path) == ["0", "1", "2"]
    assert devices_here({}, tmp_path / "none") == []
    for chosen, seen in {"2": ["2"], "2, 0": ["2", "0"], "": [], "-1": [], "1,-1,2": ["1"]}.items():
        assert devices_here({"CUDA_VISIBLE_DEVICES": chosen}, tmp_path) == seen


def test_a_machine_has_a_tpu_if_one_of_its_drivers_shows_a_chip(tmp_path):
    assert not has_tpu(tmp_path)
    (tmp_path / "vfio").mkdir()
    (tmp_path / "vfio" / "vfio").touch()
    assert not has_tpu(tmp_path)
    (tmp_path / "accel0").touch()
    assert has_tpu(tmp_path)
