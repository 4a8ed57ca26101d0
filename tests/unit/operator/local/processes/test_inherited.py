# SPDX-License-Identifier: Apache-2.0
from dtjob.local.processes.inherited import inherited


def test_nothing_of_another_job_is_inherited():
    environ = {"PATH": "/bin", "TF_CONFIG": "{}", "DTJOB_CHECKPOINT": "{}", "TF_CPP_MIN_LOG_LEVEL": "2"}
    ours = {"PYTHONUNBUFFERED": "1", "PYTHONHASHSEED": "0"}
    assert inherited(environ) == {"PATH": "/bin", "TF_CPP_MIN_LOG_LEVEL": "2", **ours}


def test_the_seed_of_hashes_is_the_one_of_pods_so_that_the_launcher_ahead_is_used():
    assert inherited({"PYTHONHASHSEED": "random"})["PYTHONHASHSEED"] == "0"
