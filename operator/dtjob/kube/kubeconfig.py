"""Which cluster: the one of a kubeconfig, or the one in whose pod this runs."""

from __future__ import annotations

import yaml

from dtjob.kube.libraries import client, config


class NoCluster(Exception):
    """No cluster is configured: neither a kubeconfig nor a pod's service account; the message says what was missed."""


async def configure(configuration: client.Configuration, kubeconfig: str | None, context: str | None) -> None:
    """Fill in by kubeconfig (a path, or kubectl's usual places), else by the pod's own service account.

    Raises NoCluster where there is neither.
    """
    try:
        await _load(configuration, kubeconfig, context)
    except config.ConfigException as error:
        raise NoCluster(str(error)) from None


async def _load(configuration: client.Configuration, kubeconfig: str | None, context: str | None) -> None:
    try:
        await config.load_kube_config(config_file=kubeconfig, context=context, client_configuration=configuration)
    except config.ConfigException:
        if kubeconfig or context:
            raise
        config.load_incluster_config(client_configuration=configuration)
    except (TypeError, AttributeError) as error:
        raise NoCluster("the kubeconfig cannot be read: it is empty or holds no clusters") from error
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise NoCluster(f"the kubeconfig cannot be read: {' '.join(str(error).split())}") from error
