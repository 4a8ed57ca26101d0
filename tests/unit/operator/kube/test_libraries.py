# SPDX-License-Identifier: Apache-2.0
"""Which modules an operator has, and that others can still have the rest."""

import subprocess
import sys


def test_the_operator_does_not_hold_the_kubernetes_client_and_others_can_have_it() -> None:
    program = "import sys, dtjob.kube.process; assert 'kubernetes' not in sys.modules; import kubernetes.client"
    subprocess.run([sys.executable, "-c", program], check=True)
