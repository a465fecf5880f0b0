"""The engine's command line."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.gpunode.serving.plugins.module_utils._engine_args import command_line, memory_share
from ansible_collections.gpunode.serving.plugins.module_utils._errors import InvalidInputError


def test_the_model_is_positional_and_the_order_is_kept() -> None:
    args = {"gpu-memory-utilization": "0.40", "max-model-len": 4096, "max-num-seqs": 16, "served-model-name": "qwen2.5-3b"}
    assert " ".join(command_line("Qwen/Qwen2.5-3B-Instruct-AWQ", args)) == (
        "Qwen/Qwen2.5-3B-Instruct-AWQ --gpu-memory-utilization 0.40 --max-model-len 4096 --max-num-seqs 16 "
        "--served-model-name qwen2.5-3b"
    )


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (True, ["--x"]),
        (False, ["--no-x"]),
        (None, []),
        ("", ["--x", ""]),
        (["a", "b"], ["--x", "a", "b"]),
        ("-1", ["--x=-1"]),
        ({"method": "ngram", "a": 1}, ["--x", '{"a":1,"method":"ngram"}']),
    ],
)
def test_kinds_of_values(value: Any, words: list[str]) -> None:
    assert command_line("m", {"x": value}) == ["m", *words]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("--max-model-len", "Write it as 'max-model-len'."),
        ("max_model_len", "Write it as 'max-model-len'."),
        ("model", "Set vllm_server_model instead."),
    ],
)
def test_names_that_are_refused(name: str, words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        command_line("m", {name: 1})


def test_the_share_of_memory_is_the_flag_or_the_engines_default() -> None:
    assert memory_share({"gpu-memory-utilization": "0.40"}) == 0.4
    assert memory_share({}) == 0.92


@pytest.mark.parametrize("value", [0, 1.1, -0.4, "40%", None])
def test_a_share_that_is_none(value: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"more than 0, at most 1"):
        memory_share({"gpu-memory-utilization": value})
