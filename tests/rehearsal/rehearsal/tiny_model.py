"""A Qwen2 model of a few hundred kilobytes, made from a seed with the standard library.

It has the files and the architecture of a model from the hub, so a real vLLM loads and serves it like one. Its text means
nothing: the weights are random. Two things are arranged, so that measurements on it are orderly: it only ever says whole
words (never half a UTF-8 character, which would hold a stream back), and it never ends by itself (every answer has the length
that was asked for).
"""

from __future__ import annotations

import json
import random
import struct
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from .workshop import Workshop

MODEL_NAME = "tiny-qwen2"
SEED = 20260

HIDDEN = 128
LAYERS = 2
HEADS = 4
KV_HEADS = 2
HEAD_DIM = HIDDEN // HEADS
INTERMEDIATE = 256
MAX_POSITIONS = 32768

PAD, START, END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
WORDS = (
    "the a of and to in is it that for on with as at by this from or an be are not one all can has more when its will out up "
    "node engine memory block cache token model batch queue request answer time second share limit slice replica device driver "
    "cluster service image volume label probe ready start stop wait measure number unit graph report table chart error cause "
    "remedy small large fast slow first last next free used full empty open closed real never always often again"
).split()
CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)

Shape = tuple[int, ...]


def build_tiny_model(workshop: Workshop) -> Path:
    """Make the model's directory.

    :returns: folder with ``tiny-qwen2/``, laid out like a snapshot of the hub
    """

    def make(folder: Path) -> None:
        home = folder / MODEL_NAME
        home.mkdir()
        write_model(home)

    return workshop.artifact("model-tiny-qwen2", make, sources=[Path(__file__)])


def write_model(home: Path) -> None:
    """Write configuration, weights and tokenizer into an existing directory."""
    vocabulary, merges = byte_pair_vocabulary(WORDS)
    specials = {token: len(vocabulary) + index for index, token in enumerate((PAD, START, END))}
    size = len(vocabulary) + len(specials)
    spoken = [vocabulary[_visible(f" {word}")] for word in WORDS]
    documents: dict[str, object] = {
        "config.json": _model_config(size, specials),
        "generation_config.json": {"eos_token_id": specials[END], "pad_token_id": specials[PAD], "do_sample": False},
        "tokenizer.json": _tokenizer(vocabulary, merges, specials),
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "eos_token": END,
            "pad_token": PAD,
            "model_max_length": MAX_POSITIONS,
            "clean_up_tokenization_spaces": False,
            "chat_template": CHAT_TEMPLATE,
        },
    }
    for name, document in documents.items():
        (home / name).write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    (home / "model.safetensors").write_bytes(_safetensors(_weights(size, spoken)))


def byte_pair_vocabulary(words: Iterable[str]) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """Train byte-level BPE until every word, with a space before it, is one token.

    :returns: token → id (the 256 bytes first), and the merges in order
    """
    pieces = [[_BYTE_TO_CHAR[byte] for byte in f" {word}".encode()] for word in words]
    vocabulary = {char: index for index, char in enumerate(_BYTE_TO_CHAR.values())}
    merges: list[tuple[str, str]] = []
    while any(len(piece) > 1 for piece in pieces):
        pairs = Counter(pair for piece in pieces for pair in pairwise(piece))
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        merges.append(best)
        vocabulary.setdefault("".join(best), len(vocabulary))
        pieces = [_merge(piece, best) for piece in pieces]
    return vocabulary, merges


def _merge(piece: Sequence[str], pair: tuple[str, str]) -> list[str]:
    """Join each occurrence of a pair, from the left."""
    merged: list[str] = []
    index = 0
    while index < len(piece):
        if tuple(piece[index : index + 2]) == pair:
            merged.append("".join(pair))
            index += 2
        else:
            merged.append(piece[index])
            index += 1
    return merged


def _byte_alphabet() -> dict[int, str]:
    """The byte-level alphabet: printable bytes stand for themselves, the others for characters from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {byte: chr(byte) for byte in printable} | {byte: chr(0x100 + index) for index, byte in enumerate(others)}


_BYTE_TO_CHAR = _byte_alphabet()


def _visible(text: str) -> str:
    return "".join(_BYTE_TO_CHAR[byte] for byte in text.encode())


def _model_config(vocabulary_size: int, specials: Mapping[str, int]) -> dict[str, object]:
    return {
        "architectures": ["Qwen2ForCausalLM"],
        "model_type": "qwen2",
        "hidden_size": HIDDEN,
        "intermediate_size": INTERMEDIATE,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "max_position_embeddings": MAX_POSITIONS,
        "vocab_size": vocabulary_size,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-06,
        "rope_theta": 1000000.0,
        "tie_word_embeddings": False,
        "use_sliding_window": False,
        "torch_dtype": "bfloat16",
        "bos_token_id": specials[PAD],
        "eos_token_id": specials[END],
        "pad_token_id": specials[PAD],
    }


def _tokenizer(
    vocabulary: Mapping[str, int], merges: Iterable[tuple[str, str]], specials: Mapping[str, int]
) -> dict[str, object]:
    """The ``tokenizer.json`` of the tokenizers library."""
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": True}
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": index, "content": token, **flags} for token, index in specials.items()],
        "normalizer": None,
        "pre_tokenizer": byte_level,
        "post_processor": None,
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": "",
            "end_of_word_suffix": "",
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": dict(vocabulary),
            "merges": [list(pair) for pair in merges],
        },
    }


def _weights(vocabulary_size: int, spoken: Sequence[int]) -> dict[str, tuple[Shape, bytes]]:
    """Random weights by tensor name, as (shape, bfloat16 bytes).

    :param spoken: ids that the output layer may choose; the rows of all others are zero and never win
    """
    generator = random.Random(SEED)
    tensors: dict[str, tuple[Shape, bytes]] = {}

    def uniform(name: str, *shape: int, scale: float) -> None:
        count = shape[0] * (shape[1] if len(shape) == 2 else 1)
        tensors[name] = (shape, _bfloat16((2 * generator.random() - 1) * scale for _ in range(count)))

    def ones(name: str) -> None:
        tensors[name] = ((HIDDEN,), _bfloat16([1.0] * HIDDEN))

    uniform("model.embed_tokens.weight", vocabulary_size, HIDDEN, scale=1.0)
    for index in range(LAYERS):
        layer = f"model.layers.{index}"
        ones(f"{layer}.input_layernorm.weight")
        ones(f"{layer}.post_attention_layernorm.weight")
        for name, width in (("q", HEADS * HEAD_DIM), ("k", KV_HEADS * HEAD_DIM), ("v", KV_HEADS * HEAD_DIM)):
            uniform(f"{layer}.self_attn.{name}_proj.weight", width, HIDDEN, scale=0.15)
            uniform(f"{layer}.self_attn.{name}_proj.bias", width, scale=0.15)
        uniform(f"{layer}.self_attn.o_proj.weight", HIDDEN, HEADS * HEAD_DIM, scale=0.15)
        uniform(f"{layer}.mlp.gate_proj.weight", INTERMEDIATE, HIDDEN, scale=0.15)
        uniform(f"{layer}.mlp.up_proj.weight", INTERMEDIATE, HIDDEN, scale=0.15)
        uniform(f"{layer}.mlp.down_proj.weight", HIDDEN, INTERMEDIATE, scale=0.15)
    ones("model.norm.weight")
    said = set(spoken)
    rows = ((2 * generator.random() - 1 if token in said else 0.0) for token in range(vocabulary_size) for _ in range(HIDDEN))
    tensors["lm_head.weight"] = ((vocabulary_size, HIDDEN), _bfloat16(rows))
    return tensors


def _bfloat16(values: Iterable[float]) -> bytes:
    """The upper half of each number's float32, little-endian."""
    return b"".join(struct.pack("<f", value)[2:] for value in values)


def _safetensors(tensors: Mapping[str, tuple[Shape, bytes]]) -> bytes:
    """A safetensors file: length of the header, the header as JSON, the data."""
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    offset = 0
    for name, (shape, data) in tensors.items():
        header[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [offset, offset + len(data)]}
        offset += len(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + b"".join(data for _, data in tensors.values())
