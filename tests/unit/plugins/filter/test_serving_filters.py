"""The filters: errors of the library become Ansible's."""

from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.gpunode.serving.plugins.filter.serving import FilterModule

FILTERS = FilterModule().filters()


def test_filters_give_what_the_library_gives() -> None:
    assert FILTERS["engine_command_line"]("m", {"max-model-len": 4096}) == ["m", "--max-model-len", "4096"]
    assert FILTERS["plugin_time_slicing"](1, rename=True, refuse_more_than_one=True) == {}
    assert FILTERS["image_problems"]("busybox:1") == []
    assert "it names no fixed version" in FILTERS["image_problems"]("busybox")[0]


def test_an_error_keeps_its_sentence() -> None:
    with pytest.raises(AnsibleFilterError, match=r"Set vllm_server_model instead"):
        FILTERS["engine_command_line"]("m", {"model": "x"})
