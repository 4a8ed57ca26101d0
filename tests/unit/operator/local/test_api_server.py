# SPDX-License-Identifier: Apache-2.0
import pytest

from dtjob.controller.cluster import AlreadyExists
from dtjob.local.api_server import Objects


@pytest.fixture
def seen():
    return []


@pytest.fixture
def objects(seen):
    return Objects(lambda type_, manifest: seen.append((type_, manifest["metadata"]["resourceVersion"])))


def manifest(name="a"):
    return {"kind": "Pod", "metadata": {"name": name}}


def test_objects_are_copied_when_they_are_stored_and_read(objects):
    given = manifest()
    stored = objects.add(given)
    given["metadata"]["name"] = stored["metadata"]["name"] = "changed"
    assert objects.get("Pod", "a")["metadata"]["name"] == "a"
    objects.all("Pod")[0]["metadata"]["name"] = "changed"
    assert objects.get("Pod", "a")["metadata"]["name"] == "a"


def test_a_name_is_taken_once(objects):
    uid = objects.add(manifest())["metadata"]["uid"]
    with pytest.raises(AlreadyExists) as error:
        objects.add(manifest())
    assert error.value.existing["metadata"]["uid"] == uid


def test_watchers_get_each_change_with_its_version(objects, seen):
    objects.add(manifest())
    objects.change("Pod", "a", lambda pod: pod.update(status={}))
    objects.remove("Pod", "a")
    objects.remove("Pod", "a")
    assert [type_ for type_, _ in seen] == ["ADDED", "MODIFIED", "DELETED"]
    assert len({version for _, version in seen}) == 3
    assert objects.get("Pod", "a") is None


def test_a_missing_object_cannot_be_changed(objects):
    assert objects.change("Pod", "a", lambda pod: pod.clear()) is None
