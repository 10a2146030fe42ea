"""Models whose shapes and rounds the data decides, beside ONNX Runtime, on one thread.

python benchmarks/onnx_flow.py [NAME ...]: in an environment with the importer of models and
torchvision, in the repository; a name may have * and ?. Weights and 20 inputs are random. Prints
for each model how many results are equal (1e-4; boxes in any order), and the ratio of the medians
of processor time, whose calls take turns. Where sets of boxes differ, it prints how many are equal
if ONNX Runtime takes our features, the results of the last convolutions: these differ in their last
bits, and a score beside a threshold or another score changes the set.
"""

from __future__ import annotations

import io
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

os.environ |= {"OMP_NUM_THREADS": "1", "TVM_NUM_THREADS": "1", "PACKER_CACHE": "off"}

import numpy as np
import onnx
import onnxruntime  # type: ignore[import-untyped]
import torch

import packer
import runtime

sys.path.append(str(Path(__file__).parents[1]))  # the installed packer is measured
from importers.onnx.tests.test_flow_models import MODELS, exported

Arrays = Sequence[np.ndarray[Any, Any]]
Call = Callable[[Arrays], Arrays]

INPUTS, TOLERANCE = 20, 1e-4
RANDOM = {"weights": None, "weights_backbone": None, "num_classes": 7}
SMALL = {"min_size": 96, "max_size": 96}
DETECTORS: dict[str, dict[str, Any]] = {
    "ssdlite320_mobilenet_v3_large": {},
    "fasterrcnn_mobilenet_v3_large_320_fpn": {
        **SMALL, "rpn_pre_nms_top_n_test": 200, "rpn_post_nms_top_n_test": 50,
        "box_score_thresh": 0.01,
    },
    "retinanet_resnet50_fpn": {**SMALL, "score_thresh": 0.01},
}  # fmt: skip


def main(patterns: list[str]) -> None:
    """Print a line for each model, and the median of the ratios."""
    warnings.filterwarnings("ignore")
    names = [n for n in (*MODELS, *DETECTORS) if any(fnmatch(n, p) for p in patterns)]
    print(f"{'model':38} {'equal':>8} {'ms':>8} {'of ORT':>7}")
    print(f"median ratio {median(map(compare, names)):.2f}")


def compare(name: str) -> float:
    """Print the line of a model, and return the ratio of times."""
    model, make_inputs = made(name)
    inputs = [make_inputs(np.random.default_rng(seed)) for seed in range(INPUTS)]
    theirs = their_call(model)
    with our_call(model) as ours:
        unpaired, times = [], ([], [])
        for given in inputs:
            expected, found = theirs(given), ours(given)
            unpaired.append(unpaired_rows(found, expected))
            for call, of_call in zip((ours, theirs), times, strict=True):
                start = time.process_time()
                call(given)
                of_call.append(time.process_time() - start)
    mine, peer = map(median, times)
    equal = f"{unpaired.count(0)} of {INPUTS}"
    print(f"{name:38} {equal:>8} {1e3 * mine:8.2f} {mine / peer:7.2f}", flush=True)
    if any(unpaired):
        differ = [given for given, rows in zip(inputs, unpaired, strict=True) if rows]
        after = equal_after_features(model, differ)
        print(
            f"  at most {max(unpaired)} rows differ; {after} of {len(differ)} equal after features"
        )
    return mine / peer


def made(name: str) -> tuple[onnx.ModelProto, Callable[[Any], Arrays]]:
    """Return a model, and a function that makes its inputs."""
    if name in MODELS:
        return exported(name), MODELS[name][1]
    from torchvision.models import detection  # type: ignore[import-untyped]

    torch.manual_seed(0)
    model = getattr(detection, name)(**RANDOM, **DETECTORS[name]).eval()
    size = 320 if name.startswith("ssd") else 96
    image, data = torch.rand(3, size, size), io.BytesIO()
    scale_layers(model, image)
    torch.onnx.export(model, ([image],), data, dynamo=False, opset_version=17)
    return onnx.load_from_string(data.getvalue()), lambda random: [
        random.random((3, size, size)).astype(np.float32)
    ]


def scale_layers(model: torch.nn.Module, image: torch.Tensor) -> None:
    """Give the results of each layer a deviation of 1, so that scores and boxes differ."""

    def scale(layer: Any, _: Any, result: torch.Tensor) -> torch.Tensor:
        deviation = result.std() if done.setdefault(layer, result.numel() > 1) else 1.0
        done[layer] = False
        layer.weight.div_(deviation)
        return result / deviation

    done: dict[Any, bool] = {}
    layers = [one for one in model.modules() if isinstance(one, torch.nn.Conv2d | torch.nn.Linear)]
    hooks = [layer.register_forward_hook(scale) for layer in layers]
    with torch.no_grad():
        for layer in layers:
            if layer.bias is not None:
                layer.bias.zero_()
        model([image])
    for hook in hooks:
        hook.remove()


@contextmanager
def our_call(model: onnx.ModelProto) -> Iterator[Call]:
    """Export a model, and give its function."""
    with TemporaryDirectory(prefix="onnx-flow-") as folder:
        build = packer.Build(cpu="native")
        path = packer.export_library(packer.from_onnx(model), Path(folder) / "m.so", build=build)
        function = runtime.load(path)["main"]

        def call(given: Arrays) -> Arrays:
            results = function(*given)
            results = results if isinstance(results, tuple) else (results,)
            return [result.numpy() for result in results]

        yield call


def their_call(model: onnx.ModelProto) -> Call:
    """Return ONNX Runtime's function of a model."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    names = [value.name for value in session.get_inputs()]
    return lambda given: session.run(None, dict(zip(names, given, strict=True)))


def unpaired_rows(found: Arrays, expected: Arrays) -> int:
    """Return how many rows of results have no equal row in the others, in either direction."""
    if all(map(are_close, found, expected)):
        return 0
    if len({len(one) for one in expected}) > 1:  # no rows that belong together
        return max(map(len, expected))
    ours, theirs = map(rows, (found, expected))
    distances = np.abs(ours[:, None] - theirs[None])
    pairs = (distances <= TOLERANCE * np.maximum(1, np.abs(theirs))).all(2)
    return int((~pairs.any(0)).sum() + (~pairs.any(1)).sum())


def are_close(found: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> bool:
    """Return True if two results have one shape and close elements."""
    limits = {"rtol": TOLERANCE, "atol": TOLERANCE}
    return found.shape == expected.shape and np.allclose(found, expected, **limits)


def rows(results: Arrays) -> np.ndarray[Any, Any]:
    """Return the box, the score and the class of each detection as a row."""
    return np.concatenate([one.reshape(len(one), -1).astype(np.float64) for one in results], 1)


def equal_after_features(model: onnx.ModelProto, inputs: Sequence[Arrays]) -> int:
    """Return for how many inputs ONNX Runtime makes our results of our last features."""
    results = [one.name for one in model.graph.output]
    inferred = onnx.shape_inference.infer_shapes(model)
    types = {one.name: one for one in inferred.graph.value_info}
    features = [name for name in last_features(model) if name in types]
    head = onnx.utils.Extractor(inferred).extract_model(features, results)
    model.graph.output.extend(types[name] for name in features)
    theirs, count = their_call(head), len(results)
    with our_call(model) as ours:
        found = map(ours, inputs)
        return sum(not unpaired_rows(one[:count], theirs(one[count:])) for one in found)


def last_features(model: onnx.ModelProto) -> list[str]:
    """Return what nodes read that no convolution follows, of what the other nodes make."""
    before, after = set(), set()  # values that a convolution follows; what the others read
    for node in reversed(model.graph.node):
        is_before = node.op_type == "Conv" or not before.isdisjoint(node.output)
        (before if is_before else after).update(node.input)
    made = [name for node in model.graph.node for name in node.output]
    heads = {name for node in model.graph.node if node.op_type == "Conv" for name in node.output}
    return [name for name in made if name in after and name in before | heads]


if __name__ == "__main__":
    main(sys.argv[1:] or ["*"])
