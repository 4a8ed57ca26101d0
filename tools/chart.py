# SPDX-License-Identifier: Apache-2.0
"""What is made from the chart: its README, and the plain manifest of a release.

python -m tools.chart readme            # writes helm/dtjob/README.md
python -m tools.chart manifest FILE     # writes all objects of the default values (needs helm)
"""

import argparse
import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from tools import binaries

CHART = Path(__file__).resolve().parents[1] / "helm" / "dtjob"
README = CHART / "README.md"
NAMESPACE = "dtjob-system"
HEAD = """# The chart `dtjob`

It installs the operator of dtjob and the CustomResourceDefinition `DistributedTrainingJob`. You need helm 3.17 or
newer, or helm 4, and Kubernetes 1.30 or newer. We ran helm 3.22.0 and 4.3.1.

```sh
helm install dtjob helm/dtjob --namespace dtjob-system --create-namespace \\
  --set image.repository=REGISTRY/dtjob-operator,image.tag=TAG,jobs.image=REGISTRY/dtjob-trainer:TAG
```

[Installing](../../docs/operate/installing.md) also describes GitOps, private registries and proxies.

## Values for production

```yaml
image: {registry: registry.example/ml, tag: 0.1.0, pullSecrets: [{name: registry}]}
operator:
  replicas: 2                        # one works, the other stands by
  priorityClassName: platform
jobs:
  image: registry.example/ml/dtjob-trainer:0.1.0
  imagePullSecrets: [{name: registry}]
  priorityClassName: training
  resources: {requests: {cpu: 1, memory: 4Gi}}
  env:
    - {name: PIP_INDEX_URL, valueFrom: {secretKeyRef: {name: pip, key: url, optional: true}}}
  scrapers:
    - namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: monitoring}}
kueue: {enabled: true}
metrics:
  serviceMonitor: {enabled: true, labels: {release: prometheus}}
  podMonitor: {enabled: true, labels: {release: prometheus}}
  rules: {enabled: true, labels: {release: prometheus}}
  dashboards: {enabled: true}
```

The PriorityClasses have to exist, and so do the Secrets in the namespaces of the jobs. Without `optional: true`, a pod
whose namespace lacks the Secret does not start. On OpenShift, which chooses the users of pods, add
`jobs.podSecurityContext: {runAsNonRoot: true}`.

## Upgrade and removal

```sh
helm upgrade dtjob helm/dtjob -n dtjob-system --reset-then-reuse-values --set image.tag=TAG
helm uninstall dtjob -n dtjob-system
```

An upgrade also upgrades the definition. Jobs continue, and no running pod is replaced. `helm uninstall` keeps the
definition and all jobs. [Upgrade](../../docs/operate/installing.md#upgrade) and
[remove](../../docs/operate/installing.md#remove) say more.

## Values

`make chart` writes this table from values.yaml and values.schema.json.

| value | default | meaning |
|---|---|---|
"""


def find_helm() -> Path | None:
    """helm by DTJOB_HELM, on the PATH, or built; None if there is no way to get it."""
    if found := os.environ.get("DTJOB_HELM") or shutil.which("helm"):
        return Path(found)
    try:
        return binaries.find(("helm",))["helm"]
    except binaries.BinariesError:
        return None


def described(schema: Mapping[str, Any], values: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any, str]]:
    """Path, default and description of each value. A group has those of its values, and not one of its own."""
    for name, value in values.items():
        part, where = schema["properties"][name], f"{path}.{name}".lstrip(".")
        inner = part.get("properties", {}).values()
        if part.get("additionalProperties") is False and all("description" in one for one in inner):
            yield from described(part, value, where)
        else:
            yield where, value, part["description"]


def readme() -> str:
    """The README of the chart."""
    schema = json.loads((CHART / "values.schema.json").read_text())
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    rows = (f"| `{path}` | `{json.dumps(default)}` | {said} |" for path, default, said in described(schema, values))
    return HEAD + "\n".join(rows) + "\n"


def manifest(helm: Path, *options: str) -> str:
    """All objects of a release named dtjob, without hooks and tests, and its namespace before them."""
    command = [str(helm), "template", "dtjob", str(CHART), f"--namespace={NAMESPACE}", "--no-hooks", "--skip-tests"]
    done = subprocess.run([*command, *options], capture_output=True, text=True, check=True)
    restricted = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn")}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": restricted}}
    return yaml.safe_dump(namespace, sort_keys=False) + done.stdout


def main() -> None:
    """Write what the arguments name."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("readme", "manifest"))
    parser.add_argument("file", type=Path, nargs="?")
    given = parser.parse_args()
    if given.what == "readme":
        README.write_text(readme())
        return
    if given.file is None:
        parser.error("manifest: name the file to write")
    helm = find_helm()
    if helm is None:
        parser.exit(1, "no helm: install it, or name it by DTJOB_HELM\n")
    given.file.parent.mkdir(parents=True, exist_ok=True)
    given.file.write_text(manifest(helm))


if __name__ == "__main__":
    main()
