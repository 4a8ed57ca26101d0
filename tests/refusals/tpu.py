# SPDX-License-Identifier: Apache-2.0
"""Strategy TPU: slices, and what GKE needs to know of them."""

from tests.refusals.manifests import bad, job, options

_V5E = {"accelerator": "tpu-v5-lite-podslice", "topology": "2x2"}
TPU = [
    *(
        bad(
            f"tpu-slice-of-{topology}",
            options("TPU", tpu={**_V5E, "topology": topology}),
            "spec.strategyOptions.tpu.topology",
            "dtjob trains only on slices of one host",
            "2x2x1",
        )
        for topology in ("4x4", "2x2x2", "8")
    ),
    bad(
        "tpu-without-accelerator",
        options("TPU", tpu={"topology": "2x2"}),
        "spec.strategyOptions.tpu.accelerator",
        "set both, or neither",
    ),
    bad(
        "tpu-by-name-with-topology",
        options("TPU", tpu={**_V5E, "address": "my-tpu"}),
        "spec.strategyOptions.tpu.address",
        "remove them, or remove address",
    ),
    *(
        bad(
            f"tpu-chips-in-{kind}",
            job(
                "TPU",
                replicaSpecs={"chief": {"resources": {kind: {"google.com/tpu": 4}}}},
                strategyOptions={"tpu": _V5E},
            ),
            "spec.replicaSpecs.chief.resources",
            "strategyOptions.tpu.topology sets the number of chips",
        )
        for kind in ("limits", "requests")
    ),
]
