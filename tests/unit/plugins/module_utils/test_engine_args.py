"""The engine's command line."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.gpunode.serving.plugins.module_utils._engine_args import command_line, memory_share, problems
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


@pytest.mark.parametrize(
    ("share", "replicas", "elsewhere", "words"),
    [
        ("0.40", 1, 0.0, []),
        ("0.22", 4, 0.12, []),
        (
            "0.40",
            3,
            0.0,
            ["gpu-memory-utilization 0.4 times 3 replicas plus 0 elsewhere is 1.2 of the GPU's memory"],
        ),
        ("0.40", 1, 0.7, ["plus 0.7 elsewhere is 1.1 of the GPU's memory"]),
        ("1.4", 1, 0.0, ["it is '1.4'. Give a share of the GPU's memory: more than 0, at most 1."]),
    ],
)
def test_shares_that_do_not_add_up_are_named(share: str, replicas: int, elsewhere: float, words: list[str]) -> None:
    found = problems({"gpu-memory-utilization": share}, "m", replicas, elsewhere)
    assert len(found) == len(words)
    assert all(word in sentence for word, sentence in zip(words, found, strict=True))


def test_without_the_flag_the_engines_default_counts_and_all_problems_are_named() -> None:
    found = problems({"max_model_len": 1}, "m", 2, 0.0)
    assert [sentence.split(":")[0] for sentence in found] == ["Writing the engine's argument 'max_model_len'", "GPU memory"]
