"""The tiny model: its files agree with each other and are the same each time."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest
from rehearsal import tiny_model


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("model")
    tiny_model.write_model(home)
    return home


def _tensors(home: Path) -> tuple[dict[str, Any], bytes]:
    content = (home / "model.safetensors").read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    assert header.pop("__metadata__") == {"format": "pt"}
    return header, content[8 + length :]


def test_the_same_seed_gives_the_same_files(home: Path, tmp_path: Path) -> None:
    tiny_model.write_model(tmp_path)
    for path in home.iterdir():
        assert path.read_bytes() == (tmp_path / path.name).read_bytes()


def test_weights_fill_the_file_and_fit_the_configuration(home: Path) -> None:
    header, data = _tensors(home)
    config = json.loads((home / "config.json").read_text())
    offset = 0
    for tensor in header.values():
        shape, (start, end) = tensor["shape"], tensor["data_offsets"]
        assert start == offset
        count = 1
        for size in shape:
            count *= size
        assert end - start == 2 * count
        offset = end
    assert offset == len(data)
    assert header["lm_head.weight"]["shape"] == [config["vocab_size"], config["hidden_size"]]
    layers = {name.split(".")[2] for name in header if name.startswith("model.layers.")}
    assert len(layers) == config["num_hidden_layers"]


def test_only_whole_words_can_be_said(home: Path) -> None:
    header, data = _tensors(home)
    start, _ = header["lm_head.weight"]["data_offsets"]
    vocabulary = json.loads((home / "tokenizer.json").read_text())["model"]["vocab"]
    width = 2 * tiny_model.HIDDEN
    said = {token for token, index in vocabulary.items() if any(data[start + index * width : start + (index + 1) * width])}
    assert said == {f"Ġ{word}" for word in tiny_model.WORDS}


def test_special_tokens_follow_the_vocabulary(home: Path) -> None:
    tokenizer = json.loads((home / "tokenizer.json").read_text())
    config = json.loads((home / "config.json").read_text())
    ids = [token["id"] for token in tokenizer["added_tokens"]]
    assert ids == list(range(len(tokenizer["model"]["vocab"]), config["vocab_size"]))
    assert sorted(tokenizer["model"]["vocab"].values()) == list(range(ids[0]))


def test_training_joins_the_most_frequent_pair_first() -> None:
    vocabulary, merges = tiny_model.byte_pair_vocabulary(["aab", "aac"])
    assert merges == [("a", "a"), ("Ġ", "aa"), ("Ġaa", "b"), ("Ġaa", "c")]
    assert len(vocabulary) == 256 + 4
