"""Configuration of the device plugin: what it would silently drop is refused."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.gpunode.serving.plugins.module_utils._errors import InvalidInputError
from ansible_collections.gpunode.serving.plugins.module_utils._plugin_config import (
    advertised,
    checked,
    problems,
    time_slicing,
)


def config(**sharing: Any) -> dict[str, Any]:
    return {"version": "v1", "flags": {"migStrategy": "none"}, "sharing": sharing}


GOOD = config(**time_slicing(4, rename=True, refuse_more_than_one=True))


def test_the_configuration_of_the_role_is_fine() -> None:
    assert problems(GOOD) == []
    assert checked(GOOD) == GOOD


def test_one_slice_needs_no_sharing_block() -> None:
    assert time_slicing(1, rename=True, refuse_more_than_one=True) == {}
    assert problems(config()) == []


def test_p06_rename_by_default_in_the_wrong_place_is_named_with_the_right_one(load) -> None:
    misplaced, renamed = load("cases/P06-config.yaml")
    assert problems(misplaced) == [
        "flags.renameByDefault is not a key that the plugin knows there (it belongs under sharing.timeSlicing.renameByDefault)"
    ]
    assert problems(renamed) == ["sharing.timeSlicing.resources[0].rename is ignored by the plugin: leave it out"]


def test_p13_one_replica_is_refused_as_the_plugin_would_crash(load) -> None:
    assert problems(load("cases/P13-config.yaml")) == [
        "sharing.timeSlicing.resources[0].replicas is 1, and must be a whole number from 2 up (for 1 leave the block out)"
    ]


@pytest.mark.parametrize("replicas", [0, -1, "4", True, None])
def test_other_replicas_that_are_no_count(replicas: Any) -> None:
    resources = [{"name": "nvidia.com/gpu", "replicas": replicas}]
    assert f"replicas is {replicas!r}" in problems(config(timeSlicing={"resources": resources}))[0]


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ({"version": "v2"}, "version is 'v2', and must be v1"),
        ({"version": "v1", "sharring": {}}, "sharring is not a key that the plugin knows"),
        (config(replicas=4), "sharing.replicas is not a key that the plugin knows there (it belongs into an entry of"),
        (config(timeSlicing={"resources": []}), "resources is empty, so that nothing is shared"),
        (config(timeSlicing={"resources": [{"name": "gpu", "replicas": 4}]}), "name is 'gpu', and must begin with nvidia.com/"),
        ({"version": "v1", "flags": {"plugin": {"strategy": "x"}}}, "flags.plugin.strategy is not a key that the plugin knows"),
    ],
)
def test_other_mistakes(bad: dict[str, Any], words: str) -> None:
    assert words in problems(bad)[0]


def test_mps_and_time_slicing_together_are_refused() -> None:
    both = {**GOOD["sharing"], "mps": {"resources": [{"name": "nvidia.com/gpu", "replicas": 4}]}}
    assert problems(config(**both)) == ["sharing.mps and sharing.timeSlicing are both set, and mps would win: keep one"]


def test_the_error_names_every_problem(load) -> None:
    with pytest.raises(InvalidInputError) as error:
        checked({**load("cases/P13-config.yaml"), "flag": {}})
    assert str(error.value).startswith("Checking the configuration of the device plugin: flag is not a key")
    assert "replicas is 1" in str(error.value)


@pytest.mark.parametrize(
    ("promise", "expected"),
    [
        (GOOD, {"nvidia.com/gpu.shared": 8, "nvidia.com/gpu": 0}),
        (config(), {"nvidia.com/gpu": 2, "nvidia.com/gpu.shared": 0}),
        (config(**time_slicing(4, rename=False, refuse_more_than_one=True)), {"nvidia.com/gpu": 8, "nvidia.com/gpu.shared": 0}),
    ],
)
def test_what_two_gpus_promise(promise: dict[str, Any], expected: dict[str, int]) -> None:
    assert advertised(promise, 2) == expected
