"""Writes a BERT-like sentence encoder as an ONNX graph that multiplies int8 by int8 and takes one text a run.

There is no attention mask and no padding, so a vector cannot depend on the texts embedded beside it. Each activation matrix is
quantised as it comes, each weight matrix keeps one scale a column, and sums are exact integers (see saturation_probe).
The messages are few enough to write by hand, which spares the `onnx` package. Formats: onnx's `onnx.proto`, and
`docs/ContribOperators.md` of onnxruntime for DynamicQuantizeMatMul and MultiHeadAttention.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Tensor = NDArray[np.float32] | NDArray[np.int8] | NDArray[np.uint8] | NDArray[np.int64]
WordTable = Callable[[Sequence[int]], Floats]
"""The word vectors of these token ids, shape (tokens, width)."""
WORDS = "words"
FLOAT = 1
TENSOR_TYPES = {np.dtype(np.float32): FLOAT, np.dtype(np.uint8): 2, np.dtype(np.int8): 3, np.dtype(np.int64): 7}
MICROSOFT = "com.microsoft"
OPSETS = {"": 20, MICROSOFT: 1}
IR_VERSION = 10
END = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Quantised:
    """A matrix in int8: `values * scales` is what it stands for; one scale a column."""

    values: NDArray[np.int8]
    scales: Floats


@dataclass(frozen=True, slots=True)
class Linear:
    """x @ weight + bias; `weight` has shape (inputs, outputs)."""

    weight: Quantised
    bias: Floats


@dataclass(frozen=True, slots=True)
class Norm:
    """Layer normalisation's gain and bias."""

    gain: Floats
    bias: Floats


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer of BERT (Devlin et al., 2019), normalised after each half. `attend` gives query, key and value side by side."""

    attend: Linear
    attended: Linear
    attention_norm: Norm
    up: Linear
    down: Linear
    norm: Norm


@dataclass(frozen=True, slots=True)
class Encoder:
    """All weights but the word vectors; `positions` has shape (longest text, width), token type added."""

    positions: Floats
    norm: Norm
    layers: tuple[Layer, ...]
    heads: int


def encoder_graph(encoder: Encoder, *, signed: bool = True) -> bytes:
    """The ONNX model: input `words`, the word vectors of a text's tokens, float32 (1, tokens, width); output float32 (1, width).

    The output is the mean over all tokens, of unit length. Word vectors are looked up outside: a table of 250,000 of them would
    make up most of the graph. The same encoder gives the same bytes. Unsigned weights (128 higher, with a zero point of 128)
    stand for the same numbers and give the same vectors on CPUs that sum signed ones wrongly.
    """
    graph = Graph(signed=signed)
    hidden = place(graph, encoder)
    for layer in encoder.layers:
        hidden = apply_layer(graph, hidden, layer, encoder.heads)
    mean = graph.node("ReduceMean", [hidden, graph.constant(np.array([1]))], keepdims=0)
    vector = graph.node("LpNormalization", [mean], axis=-1, p=2)
    width = encoder.positions.shape[1]
    return graph.model([value(WORDS, FLOAT, [1, "tokens", width])], value(vector, FLOAT, [1, width]))


def place(graph: Graph, encoder: Encoder) -> str:
    """Word plus position vectors, normalised."""
    length = graph.node("Shape", [WORDS], start=1, end=2)
    start, axis = graph.constant(np.array([0])), graph.constant(np.array([0]))
    positions = graph.node("Slice", [graph.constant(encoder.positions), start, length, axis])
    return normalise(graph, graph.node("Add", [WORDS, positions]), encoder.norm)


def apply_layer(graph: Graph, hidden: str, layer: Layer, heads: int) -> str:
    """Attention and feed-forward, each added to its input and normalised."""
    parts = graph.node("Split", multiply(graph, [hidden], layer.attend), outputs=3, axis=2, num_outputs=3)
    context = graph.node("MultiHeadAttention", parts.split(), MICROSOFT, num_heads=heads)
    (attended,) = multiply(graph, [context], layer.attended)
    middle = normalise(graph, graph.node("Add", [attended, hidden]), layer.attention_norm)
    wide = [graph.node("Gelu", [part]) for part in multiply(graph, first_and_rest(graph, middle), layer.up)]
    fed = graph.node("Concat", multiply(graph, wide, layer.down), axis=1)
    return normalise(graph, graph.node("Add", [fed, middle]), layer.norm)


def first_and_rest(graph: Graph, hidden: str) -> list[str]:
    """The first token's row and all others, to be quantised apart.

    The first token is an attention sink (Xiao et al., 2024) with activations up to ten times any other's: under one scale it
    would leave the others five bits. Apart, the distance to the float32 vectors falls from .0037 to .0011 for 3 % of the time.
    """
    start, second, end, axis = (graph.constant(np.array([at])) for at in (0, 1, END, 1))
    return [graph.node("Slice", [hidden, start, second, axis]), graph.node("Slice", [hidden, second, end, axis])]


def multiply(graph: Graph, parts: Sequence[str], linear: Linear) -> list[str]:
    """Each part `@ weight + bias` in int8; the empty name leaves out zero points of 0."""
    weight = linear.weight
    if graph.signed:
        values, zeros = graph.constant(weight.values), ""
    else:
        values = graph.constant((weight.values.astype(np.int16) + 128).astype(np.uint8))
        zeros = graph.constant(np.full(len(weight.scales), 128, dtype=np.uint8))
    inputs = [values, graph.constant(weight.scales), zeros, graph.constant(linear.bias)]
    return [graph.node("DynamicQuantizeMatMul", [part, *inputs], MICROSOFT) for part in parts]


def saturation_probe() -> tuple[bytes, Floats, Floats]:
    """A product of the largest numbers: the graph, its input and what it must give.

    x86 CPUs with AVX2 or AVX-512 but without VNNI add pairs of products in 16 bits, and 255 * 127 * 2 overflows unnoticed:
    vectors then had cosines down to .86 to the right ones. onnxruntime's own remedy, `session.x64quantprecision`, only acts
    together with fusions that we turn off.
    """
    graph = Graph(signed=True)
    largest = Linear(
        Quantised(np.full((64, 32), 127, dtype=np.int8), np.ones(32, dtype=np.float32)), np.zeros(32, dtype=np.float32)
    )
    (product,) = multiply(graph, [WORDS], largest)
    model = graph.model([value(WORDS, FLOAT, [1, "tokens", 64])], value(product, FLOAT, [1, "tokens", 32]))
    return model, np.ones((1, 8, 64), dtype=np.float32), np.full((1, 8, 32), 64 * 127, dtype=np.float32)


def normalise(graph: Graph, hidden: str, norm: Norm) -> str:
    """LayerNormalization, which onnxruntime runs six times faster than the SkipLayerNormalization it would fuse it into."""
    inputs = [hidden, graph.constant(norm.gain), graph.constant(norm.bias)]
    return graph.node("LayerNormalization", inputs, axis=-1, epsilon=1e-12)


class Graph:
    """Collects the nodes and constants of an ONNX model under made-up names."""

    def __init__(self, *, signed: bool = True) -> None:
        self.signed = signed
        self._nodes: list[bytes] = []
        self._constants: list[bytes] = []

    def constant(self, tensor: Tensor) -> str:
        """TensorProto: 1 dims, 2 data_type, 8 name, 9 raw_data."""
        name = f"c{len(self._constants)}"
        shape = b"".join(field(1, size) for size in tensor.shape)
        data = np.ascontiguousarray(tensor).tobytes()
        self._constants.append(shape + field(2, TENSOR_TYPES[tensor.dtype]) + field(8, name) + field(9, data))
        return name

    def node(self, operator: str, inputs: Sequence[str], domain: str = "", outputs: int = 1, **attributes: int | float) -> str:
        """NodeProto: 1 input, 2 output, 4 op_type, 5 attribute, 7 domain. Gives the outputs' names, a space between them."""
        names = [f"n{len(self._nodes)}.{number}" for number in range(outputs)]
        message = b"".join(field(1, name) for name in inputs) + b"".join(field(2, name) for name in names)
        message += field(4, operator) + attribute_fields(attributes) + field(7, domain)
        self._nodes.append(message)
        return " ".join(names)

    def model(self, inputs: Sequence[bytes], output: bytes) -> bytes:
        """ModelProto: 1 ir_version, 7 graph, 8 opset_import. GraphProto: 1 node, 2 name, 5 initializer, 11 input, 12 output."""
        graph = b"".join(field(1, node) for node in self._nodes) + field(2, "encoder")
        graph += b"".join(field(5, constant) for constant in self._constants)
        graph += b"".join(field(11, each) for each in inputs) + field(12, output)
        opsets = b"".join(field(8, field(1, domain) + field(2, version)) for domain, version in OPSETS.items())
        return field(1, IR_VERSION) + field(7, graph) + opsets


def value(name: str, element: int, shape: Sequence[int | str]) -> bytes:
    """ValueInfoProto: 1 name, 2 type; TypeProto: 1 tensor; its 1 elem_type, 2 shape; a shape's 1 dim, a dim's 1 or 2."""
    dims = b"".join(field(1, field(2 if isinstance(size, str) else 1, size)) for size in shape)
    return field(1, name) + field(2, field(1, field(1, element) + field(2, dims)))


def attribute_fields(attributes: Mapping[str, int | float]) -> bytes:
    """AttributeProto: 1 name, 2 f or 3 i, 20 type (1 FLOAT, 2 INT)."""
    fields = b""
    for name, number in attributes.items():
        kind, place = (1, 2) if isinstance(number, float) else (2, 3)
        fields += field(5, field(1, name) + field(place, number) + field(20, kind))
    return fields


def field(number: int, content: int | float | str | bytes) -> bytes:
    """One protobuf field: varint, 32-bit float or length-delimited, by the content's type (protobuf.dev, "Encoding")."""
    if isinstance(content, int):
        return varint(number << 3) + varint(content)
    if isinstance(content, float):
        return varint(number << 3 | 5) + struct.pack("<f", content)
    if isinstance(content, str):
        content = content.encode()
    return varint(number << 3 | 2) + varint(len(content)) + content


def varint(number: int) -> bytes:
    """Seven bits a byte, lowest first; negative numbers as 64-bit two's complement."""
    number &= (1 << 64) - 1
    digits = bytearray()
    while number > 127:
        digits.append(number & 127 | 128)
        number >>= 7
    return bytes([*digits, number])
