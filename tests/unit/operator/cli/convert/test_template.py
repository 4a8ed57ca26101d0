# SPDX-License-Identifier: Apache-2.0
"""Labels of TFJob's pods in selectors and fields become dtjob's."""

from dtjob.cli.convert.reading import Findings
from dtjob.cli.convert.template import renamed, warn_of_hosts

_OLD = "training.kubeflow.org"
_NEW = "training.dtjob.dev"


def test_selectors_follow_the_labels() -> None:
    said = Findings()
    terms = {
        "labelSelector": {
            "matchLabels": {f"{_OLD}/job-name": "a", f"{_OLD}/replica-type": "Master", "app": "b"},
            "matchExpressions": [{"key": f"{_OLD}/replica-type", "operator": "In", "values": ["PS"]}],
        },
        "matchLabelKeys": [f"{_OLD}/replica-index"],
    }
    assert renamed(terms, "spec", said) == {
        "labelSelector": {
            "matchLabels": {f"{_NEW}/job-name": "a", f"{_NEW}/role": "chief", "app": "b"},
            "matchExpressions": [{"key": f"{_NEW}/role", "operator": "In", "values": ["ps"]}],
        },
        "matchLabelKeys": [f"{_NEW}/index"],
    }
    assert said.found == []


def test_a_label_without_a_counterpart_is_said() -> None:
    said = Findings()
    renamed({"matchLabels": {f"{_OLD}/job-role": "master"}}, "spec", said)
    assert [one.warning for one in said.found] == [True]


def test_texts_stay() -> None:
    said = Findings()
    args = {"args": [f"{_OLD}/job-name"], "command": ["a"]}
    assert renamed(args, "spec", said) == args


def test_only_hosts_of_this_job_are_said() -> None:
    said = Findings()
    warn_of_hosts({"a": "my-mnist-ps-0", "b": ["mnist-ps-0:2222"], "c": "mnist-ps-0-1"}, "spec", "mnist", said)
    assert [one.path for one in said.found] == ["spec.b[0]"]
