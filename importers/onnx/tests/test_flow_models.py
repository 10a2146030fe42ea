"""Models whose shapes the data decides, as torch.onnx writes them, beside ONNX Runtime."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from importers.onnx.tests.support.beside_ort import main_of

Array = np.ndarray[Any, Any]
Random = np.random.Generator


class Nms(torch.autograd.Function):
    """ONNX's NonMaxSuppression of one image, for the exporter; here it takes every box."""

    @staticmethod
    def forward(ctx: Any, boxes: Tensor, scores: Tensor, overlap: float, least: float) -> Tensor:
        return torch.cartesian_prod(*map(torch.arange, scores.shape)).to(torch.int64)

    @staticmethod
    def symbolic(g: Any, boxes: Any, scores: Any, overlap: float, least: float) -> Any:
        def number(value: float | int, dtype: torch.dtype) -> Any:
            return g.op("Constant", value_t=torch.tensor([value], dtype=dtype))

        most = number(50, torch.int64)
        limits = (number(one, torch.float32) for one in (overlap, least))
        return g.op("NonMaxSuppression", boxes, scores, most, *limits)


class RoiAlign(torch.autograd.Function):
    """ONNX's RoiAlign, for the exporter; here it gives zeros."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, boxes: Tensor, images: Tensor) -> Tensor:
        return torch.zeros(len(boxes), x.shape[1], 3, 3)

    @staticmethod
    def symbolic(g: Any, x: Any, boxes: Any, images: Any) -> Any:
        return g.op(
            "RoiAlign",
            x,
            boxes,
            images,
            output_height_i=3,
            output_width_i=3,
            sampling_ratio_i=2,
            spatial_scale_f=0.25,
        )


def decoded(raw: Tensor, centres: Tensor) -> Tensor:
    """Return the corners of boxes."""
    centre, size = centres + raw[:, :2], raw[:, 2:].exp() * 4
    return torch.cat([centre - size, centre + size], 1)


def grid(x: Tensor) -> Tensor:
    """Return the centres of cells."""
    rows, columns = torch.arange(x.shape[2]) * 4.0, torch.arange(x.shape[3]) * 4.0
    return torch.stack(torch.meshgrid(rows, columns, indexing="ij"), 2).reshape(-1, 2).float()


class Yolo(nn.Module):
    """One stage: a mask over the cells, the best class, and the boxes that overlap little."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.head = nn.Conv2d(3, 8, 5, 4, 2), nn.Conv2d(8, 4 + 1 + 3, 1)

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        x = self.head(F.silu(self.stem(image)))
        raw = x.flatten(2)[0].t()
        boxes, scores = decoded(raw[:, :4], grid(x)), raw[:, 4:5].sigmoid() * raw[:, 5:].sigmoid()
        is_object = raw[:, 4].sigmoid() > 0.5
        boxes, scores = boxes[is_object], scores[is_object]
        kept = Nms.apply(boxes[None], scores.t()[None], 0.4, 0.1)
        classes, chosen = kept[:, 1], kept[:, 2]
        return boxes[chosen], scores[chosen, classes], classes


class TwoStages(nn.Module):
    """Proposals, their features, and the boxes of each class."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.rpn = nn.Conv2d(3, 8, 5, 4, 2), nn.Conv2d(8, 5, 1)
        self.fc, self.head = nn.Linear(72, 16), nn.Linear(16, 3 * 5)

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        x = F.relu(self.stem(image))
        raw = self.rpn(x).flatten(2)[0].t()
        scores, order = raw[:, 0].topk(30)
        boxes = decoded(raw[order, 1:], grid(x)[order]).clamp(0, 32)
        large = ((boxes[:, 2:] - boxes[:, :2]).min(1).values > 0.1).nonzero()[:, 0]
        boxes, scores = boxes[large], scores[large]
        kept = Nms.apply(boxes[None], scores[None, None], 0.7, -1e9)[:, 2]
        boxes = boxes[kept]
        features = RoiAlign.apply(x, boxes, torch.zeros(boxes.shape[0], dtype=torch.int64))
        out = self.head(F.relu(self.fc(features.flatten(1)))).reshape(-1, 3, 5)
        scores = out[:, :, 0].softmax(1)
        refined = boxes[:, None] + out[:, :, 1:]
        found = Nms.apply(refined[:, 1][None], scores[:, 1:].t()[None], 0.5, 0.05)
        best, order = scores[found[:, 2], found[:, 1] + 1].sort(descending=True)
        return refined[found[order, 2], found[order, 1] + 1], best, found[order, 1]


class Detr(nn.Module):
    """Queries that attend to an image; only the likely objects remain."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.queries = nn.Conv2d(3, 16, 8, 8), nn.Parameter(torch.randn(12, 16))
        self.layer = nn.TransformerDecoderLayer(16, 2, 32, batch_first=True)
        self.classes, self.boxes = nn.Linear(16, 4), nn.Linear(16, 4)

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        memory = self.stem(image).flatten(2).transpose(1, 2)
        found = self.layer(self.queries[None], memory)[0]
        scores, classes = self.classes(found).softmax(1)[:, :-1].max(1)
        keep = scores > 0.2
        boxes, scores, classes = self.boxes(found)[keep].sigmoid(), scores[keep], classes[keep]
        low, high = boxes[:, :2] - boxes[:, 2:] / 2, boxes[:, :2] + boxes[:, 2:] / 2
        boxes = torch.cat([low, high], 1)
        kept = Nms.apply(boxes[None], scores[None, None], 0.5, 0.0)[:, 2]
        return boxes[kept], scores[kept], classes[kept]


class Experts(nn.Module):
    """Each token goes to two of four networks."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(8, 4)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8)) for _ in range(4)
        )

    def forward(self, x: Tensor) -> Tensor:
        weights, chosen = self.gate(x).softmax(1).topk(2, 1)
        made = torch.zeros_like(x)
        for index, expert in enumerate(self.experts):
            token, place = torch.where(chosen == index)
            made = made.index_add(0, token, weights[token, place, None] * expert(x[token]))
        return made


class Messages(nn.Module):
    """Nodes of a graph add what their neighbours send; isolated ones are left out."""

    def __init__(self) -> None:
        super().__init__()
        self.send, self.update = nn.Linear(8, 8), nn.GRUCell(8, 8)

    def forward(self, x: Tensor, edges: Tensor) -> tuple[Tensor, Tensor]:
        for _ in range(2):
            sent = self.send(x)[edges[0]]
            mail = torch.zeros_like(x).index_add(0, edges[1], sent)
            x = self.update(mail, x)
        degree = torch.zeros(x.shape[0]).index_add(0, edges[1], torch.ones(edges.shape[1]))
        return x, x[degree > 0]


class Packed(nn.Module):
    """A recurrent network over sequences of different lengths."""

    def __init__(self, kind: type[nn.RNNBase]) -> None:
        super().__init__()
        self.layers = kind(5, 6, 2, batch_first=True, bidirectional=True)

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True)
        y, h = self.layers(packed)
        y, _ = nn.utils.rnn.pad_packed_sequence(y, batch_first=True)
        return y, h[0] if isinstance(h, tuple) else h


def beams(table: Tensor, start: Tensor, rounds: Tensor, width: int) -> tuple[Tensor, Tensor]:
    """Keep the best `width` rows of tokens for some rounds."""
    tokens, total = start.reshape(1, 1), torch.zeros(1)
    for _ in range(int(rounds)):
        scores = torch.log_softmax(table[tokens[:, -1]], 1) + total[:, None]
        count = min(width, scores.numel())
        total, flat = scores.flatten().topk(count)
        source = torch.div(flat, table.shape[1], rounding_mode="floor")
        word = flat - source * table.shape[1]
        tokens = torch.cat([tokens[source], word[:, None]], 1)
    return tokens, total


class Beams(nn.Module):
    """A search that keeps the best continuations."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.run = nn.Parameter(torch.randn(11, 11)), torch.jit.script(beams)

    def forward(self, start: Tensor, rounds: Tensor) -> tuple[Tensor, Tensor]:
        return self.run(self.table, start, rounds, 4)


def transduced(frames: Tensor, words: Tensor, out: Tensor, blank: int) -> Tensor:
    """Return the words of frames; a blank ends a frame."""
    found, state = [torch.tensor(blank)], words[blank]
    for i in range(frames.shape[0]):
        count, going = 0, True
        while going:
            best = torch.tanh(frames[i] + state).matmul(out).argmax()
            going = bool(best != blank) and count < 3
            if going:
                found.append(best)
                state = torch.tanh(state + words[best])
                count += 1
    return torch.stack(found)


class Transducer(nn.Module):
    """A greedy decoder: words for each frame until a blank."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.out = nn.Parameter(torch.randn(7, 8)), nn.Parameter(torch.randn(8, 7))
        self.run = torch.jit.script(transduced)

    def forward(self, frames: Tensor) -> Tensor:
        return self.run(frames, self.words, self.out, 0)


def images(random: Random) -> list[Array]:
    """An image."""
    return [random.normal(size=(1, 3, 32, 32)).astype(np.float32)]


def edges_of(random: Random) -> list[Array]:
    """A graph: features of nodes, and pairs of nodes."""
    nodes, count = random.integers(2, 9), random.integers(1, 20)
    return [
        random.normal(size=(nodes, 8)).astype(np.float32),
        random.integers(0, nodes, (2, count)),
    ]


def padded(random: Random) -> list[Array]:
    """Texts in order of their lengths."""
    lengths = np.sort(random.integers(1, 8, random.integers(1, 5)))[::-1].copy()
    return [random.normal(size=(len(lengths), lengths[0], 5)).astype(np.float32), lengths]


def searches(random: Random) -> list[Array]:
    """A first word and a number of rounds."""
    return [random.integers(0, 11, ()), random.integers(1, 9, ())]


def floats(*shape: int) -> Callable[[Random], list[Array]]:
    """Numbers of a shape; 0 is any extent."""

    def made(random: Random) -> list[Array]:
        return [
            random.normal(size=[one or random.integers(1, 12) for one in shape]).astype(np.float32)
        ]

    return made


MODELS: dict[
    str, tuple[Callable[[], nn.Module], Callable[[Random], list[Array]], dict[str, Any]]
] = {
    "YOLO": (Yolo, images, {}),
    "two stages": (TwoStages, images, {}),
    "DETR": (Detr, images, {}),
    "experts": (Experts, floats(0, 8), {"in0": {0: "tokens"}}),
    "graph": (Messages, edges_of, {"in0": {0: "nodes"}, "in1": {1: "edges"}}),
    "LSTM": (
        lambda: Packed(nn.LSTM),
        padded,
        {"in0": {0: "batch", 1: "length"}, "in1": {0: "batch"}},
    ),
    "GRU": (
        lambda: Packed(nn.GRU),
        padded,
        {"in0": {0: "batch", 1: "length"}, "in1": {0: "batch"}},
    ),
    "beams": (Beams, searches, {}),
    "transducer": (Transducer, floats(0, 8), {"in0": {0: "frames"}}),
}


def exported(name: str) -> onnx.ModelProto:
    """Return a model of random weights as the exporter writes it."""
    torch.manual_seed(3)
    make, inputs, axes = MODELS[name]
    given = tuple(map(torch.from_numpy, map(np.asarray, inputs(np.random.default_rng(7)))))
    names, data = [f"in{i}" for i in range(len(given))], io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            make().eval(),
            given,
            data,
            dynamo=False,
            opset_version=17,
            input_names=names,
            dynamic_axes=axes,
        )
    return onnx.load_from_string(data.getvalue())


@pytest.mark.parametrize("name", MODELS)
def test_a_model_is_as_in_onnx_runtime(name: str, tmp_path: Path) -> None:
    """Of 20 random inputs each."""
    model = exported(name)
    main = main_of(model, tmp_path)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    names = [one.name for one in session.get_inputs()]
    for seed in range(20):
        arrays = MODELS[name][1](np.random.default_rng(seed))
        expected = session.run(None, dict(zip(names, arrays, strict=True)))
        found = main(*arrays)
        for one, wanted in zip(found if len(expected) > 1 else [found], expected, strict=True):
            assert one.shape == wanted.shape
            np.testing.assert_allclose(one.numpy(), wanted, rtol=1e-4, atol=1e-5)


def test_equal_features_give_equal_boxes(tmp_path: Path) -> None:
    """Where a set of boxes differs, features were rounded otherwise: what follows them is equal."""
    model = exported("YOLO")
    before = [node.output[0] for node in model.graph.node if node.op_type == "Conv"][-1]
    outputs = [one.name for one in model.graph.output]
    inferred = onnx.shape_inference.infer_shapes(model)
    (features,) = (one for one in inferred.graph.value_info if one.name == before)
    head = onnx.utils.Extractor(inferred).extract_model([before], outputs)
    model.graph.output.append(features)
    main = main_of(model, tmp_path)
    session = onnxruntime.InferenceSession(head.SerializeToString())
    for seed in range(20):
        *found, given = main(*MODELS["YOLO"][1](np.random.default_rng(seed)))
        for one, wanted in zip(found, session.run(None, {before: given.numpy()}), strict=True):
            assert one.shape == wanted.shape
            np.testing.assert_allclose(one.numpy(), wanted, rtol=1e-6, atol=1e-6)
