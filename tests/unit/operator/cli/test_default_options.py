# SPDX-License-Identifier: Apache-2.0
"""`--default-image`, `--default-pod-label` and `--default-gang-provider`."""

import pytest

from dtjob.bad_input import BadInput
from dtjob.cli.default_options import defaults


def test_given_defaults_are_used() -> None:
    made = defaults("registry:5000/trainer@sha256:0", ["team=vision", "example.com/queue=a"])
    assert made.image == "registry:5000/trainer@sha256:0"
    assert made.pod_labels == {"team": "vision", "example.com/queue": "a"}
    assert (defaults(None, []).image, defaults(None, []).pod_labels) == (None, {})


def test_a_text_that_is_no_gang_provider_is_refused() -> None:
    assert [defaults(None, [], given).gang_provider for given in (None, "Volcano")] == ["Kubernetes", "Volcano"]
    with pytest.raises(BadInput, match="--default-gang-provider: 'kubernetes' is none; write one of Kubernetes, Vol"):
        defaults(None, [], "kubernetes")
