# SPDX-License-Identifier: Apache-2.0
"""Kubernetes' metadata: the names of its fields."""

from dtjob.api.object_meta import ManagedFields, ObjectMeta


def test_fields_are_named_as_kubernetes_names_them() -> None:
    names = {field.alias for field in ObjectMeta.model_fields.values()}
    assert names >= {"generateName", "ownerReferences", "deletionGracePeriodSeconds", "selfLink", "managedFields"}
    assert {field.alias for field in ManagedFields.model_fields.values()} >= {"fieldsType", "fieldsV1"}
