from __future__ import annotations

from dtjob.local.inherited import inherited


def test_nothing_of_another_job_is_inherited():
    environ = {"PATH": "/bin", "TF_CONFIG": "{}", "DTJOB_CHECKPOINT": "{}", "TF_CPP_MIN_LOG_LEVEL": "2"}
    assert inherited(environ) == {"PATH": "/bin", "TF_CPP_MIN_LOG_LEVEL": "2", "PYTHONUNBUFFERED": "1"}
