# SPDX-License-Identifier: Apache-2.0
"""Which cluster: that of a kubeconfig, or that of the pod in which the operator runs."""

import os

import yaml

from dtjob.kube.libraries import client, config


class NoCluster(Exception):
    """No cluster is configured: neither a kubeconfig nor a pod's service account; the message says what was missed."""


async def configure(configuration: client.Configuration, kubeconfig: str | None, context: str | None) -> None:
    """Fill in by kubeconfig (a path, or kubectl's usual places), else by the pod's own service account.

    Raises NoCluster where there is neither.
    """
    named = bool(kubeconfig or context)
    try:
        if named or _is_in_a_usual_place():  # else the client would warn of each operator in a pod
            try:
                await config.load_kube_config(kubeconfig, context=context, client_configuration=configuration)
                return
            except config.ConfigException:
                if named:
                    raise
        config.load_incluster_config(client_configuration=configuration)
    except config.ConfigException as error:
        raise NoCluster(str(error)) from None
    except (TypeError, AttributeError) as error:
        raise NoCluster("the kubeconfig cannot be read: it is empty or holds no clusters") from error
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise NoCluster(f"the kubeconfig cannot be read: {' '.join(str(error).split())}") from error


def _is_in_a_usual_place() -> bool:
    """Whether there is a kubeconfig where kubectl looks for one."""
    places = config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION.split(os.pathsep)
    # Not pathlib: it raises where the process may not look into its home, or has none.
    return any(os.path.exists(os.path.expanduser(place)) for place in places if place)  # noqa: PTH110, PTH111
