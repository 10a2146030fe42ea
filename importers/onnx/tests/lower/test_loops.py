"""Loops over many elements: whole parts of rows and columns, and the rest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import numpy_helper, parser

import packer
import runtime
from dso_packer_onnx.image import Image

HEAD = '<ir_version: 10, opset_import: ["" : 23]> g '
REDUCTIONS = [f"Reduce{name}" for name in ("Sum", "Mean", "Max", "Min", "Prod", "L1", "L2")]


def check(text: str | onnx.ModelProto, x: np.ndarray, folder: Path) -> None:
    """Compare a model with ONNX Runtime."""
    proto = parser.parse_model(HEAD + text) if isinstance(text, str) else text
    onnx.checker.check_model(proto)
    main = runtime.load(packer.export_library(packer.from_onnx(proto), folder / "m.so"))["main"]
    expected = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, {"x": x})
    results = main(x)
    for one, wanted in zip(results if len(expected) > 1 else [results], expected, strict=True):
        found = one.numpy()
        assert found.shape == wanted.shape
        np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=1e-5)


def given(shape: tuple[int, ...], dtype: str = "float32") -> np.ndarray:
    """Random numbers of both signs; near 1, so that products are neither 0 nor large."""
    random = np.random.default_rng(len(shape))
    if dtype == "int64":
        return random.choice([-1, 1, 1], shape).astype(np.int64)
    return (1 + 0.1 * random.normal(size=shape)).astype(dtype)


@pytest.mark.parametrize("kind", REDUCTIONS)
@pytest.mark.parametrize("axes", ["0", "1", "2", "0, 1", "1, 2", "0, 2", "0, 1, 2"])
def test_reductions_of_many_elements_are_those_of_onnx_runtime(
    kind: str, axes: str, tmp_path: Path
) -> None:
    """More columns than one loop has, and rows that are not whole parts."""
    count = axes.count(",") + 1
    text = f"(float[3,21,70] x) => (float[] y) <int64[{count}] a = {{{axes}}}>"
    kept = f"{kind}<keepdims=0>(x, a)" if count == 3 else f"{kind}(x, a)"
    rank = "" if count == 3 else "p,q,r"
    check(
        text.replace("[] y", f"[{rank}] y" if rank else " y") + f" {{ y = {kept} }}",
        given((3, 21, 70)),
        tmp_path,
    )


@pytest.mark.parametrize(
    ("kind", "dtype", "result"),
    [
        ("ReduceMax", "float", -np.inf),
        ("ReduceMin", "float", np.inf),
        ("ReduceMax", "int32", -(1 << 31)),
        ("ReduceMin", "uint8", 255),
        ("ReduceMin", "bool", True),
    ],
)
def test_no_element_gives_the_end_of_the_type(
    kind: str, dtype: str, result: Any, tmp_path: Path
) -> None:
    """As ONNX defines it, for columns and for rows; also if only a call has none."""
    text = f"""({dtype}[2,0,3] x, {dtype}[2,n,3] z, {dtype}[2,3,n] w)
      => ({dtype}[p,q,r] a, {dtype}[s,t,u] b, {dtype}[c,d,e] m)
      <int64[1] one={{1}}, int64[1] o={{2}}>
      {{ a = {kind}(x, one) b = {kind}(z, one) m = {kind}(w, o) }}"""
    proto = parser.parse_model(HEAD + text)
    main = runtime.load(packer.export_library(packer.from_onnx(proto), tmp_path / "m.so"))["main"]
    kinds = dtype.replace("float", "float32")
    for found in main(*(np.zeros(shape, kinds) for shape in ((2, 0, 3), (2, 0, 3), (2, 3, 0)))):
        assert 1 in found.shape and found.shape[0] == 2 and (found.numpy() == result).all()


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize(
    "node",
    [
        "CumSum<exclusive=0>(x, a)",
        "CumSum<exclusive=1, reverse=1>(x, a)",
        "Softmax<axis={axis}>(x)",
        "LogSoftmax<axis={axis}>(x)",
    ],
)
def test_rows_and_columns_are_those_of_onnx_runtime(node: str, axis: int, tmp_path: Path) -> None:
    """Along each axis."""
    text = f"(float[5,33,70] x) => (float[p,q,r] y) <int64 a = {{{axis}}}>"
    check(f"{text} {{ y = {node.format(axis=axis)} }}", given((5, 33, 70)), tmp_path)


@pytest.mark.parametrize("kind", ["float", "int64"])
@pytest.mark.parametrize(
    ("shape", "perm"),
    [
        ((19, 35), (1, 0)),
        ((2, 17, 3, 20), (0, 2, 3, 1)),
        ((2, 17, 3, 20), (3, 1, 2, 0)),
        ((4, 1, 18, 5), (2, 1, 0, 3)),
        ((3, 4, 5), (0, 1, 2)),
        ((1, 1, 1), (2, 0, 1)),
        ((2, 3, 2, 3, 2), (4, 2, 0, 3, 1)),
    ],
)
def test_axes_are_exchanged(
    shape: tuple[int, ...], perm: tuple[int, ...], kind: str, tmp_path: Path
) -> None:
    """By rows and by squares, with a rest; axes that remain adjacent are one."""
    extents, rank = ",".join(map(str, shape)), ",".join("pqrst"[: len(shape)])
    text = f"({kind}[{extents}] x) => ({kind}[{rank}] y) {{ y = Transpose<perm={[*perm]}>(x) }}"
    check(text, given(shape, {"float": "float32"}.get(kind, kind)), tmp_path)


@pytest.mark.parametrize("pads", ["1,0,2,3, 0,2,1,1", "0,0,-1,2, 0,-2,3,-4", "0,0,0,-3, 0,0,0,-3"])
@pytest.mark.parametrize("fill", ["", ", v"])
def test_pads_of_both_signs_move_rows(pads: str, fill: str, tmp_path: Path) -> None:
    """Elements are added, or left out."""
    text = f"(float[2,3,5,6] x) => (float[p,q,r,s] y) <int64[8] a = {{{pads}}}, float v = {{-2}}>"
    check(f"{text} {{ y = Pad(x, a{fill}) }}", given((2, 3, 5, 6)), tmp_path)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_rows_are_gathered(axis: int, tmp_path: Path) -> None:
    """From the end too."""
    text = "(float[4,5,6] x) => (float[p,q,r,s] y) <int64[2,2] i = {0, -1, 3, -4}>"
    check(f"{text} {{ y = Gather<axis={axis}>(x, i) }}", given((4, 5, 6)), tmp_path)


@pytest.mark.parametrize("kind", ["ReduceSum", "ReduceMax", "ReduceProd"])
@pytest.mark.parametrize("axis", [0, 1])
def test_integers_are_combined_exactly(kind: str, axis: int, tmp_path: Path) -> None:
    """In 64 bits."""
    text = f"(int64[40,90] x) => (int64[p,q] y) <int64[1] a = {{{axis}}}> {{ y = {kind}(x, a) }}"
    check(text, given((40, 90), "int64"), tmp_path)


# Each function in double precision, and the greatest number for which it is checked.
FUNCTIONS = {
    "Sin": (np.sin, 1e6),
    "Cos": (np.cos, 1e6),
    "Exp": (np.exp, 87),
    "Log": (np.log, 1e30),
    "Tanh": (np.tanh, 30),
    "Softplus": (lambda x: np.logaddexp(0, x), 80),
    "Mish": (lambda x: x * np.tanh(np.logaddexp(0, x)), 80),
    "Round": (np.rint, 1e9),
    "Celu": (lambda x: np.where(x > 0, x, np.expm1(x)), 80),
    "Selu": (lambda x: 1.05070098 * np.where(x > 0, x, 1.67326324 * np.expm1(x)), 80),
    "Swish": (lambda x: x / (1 + np.exp(-x)), 80),
    "Softsign": (lambda x: x / (1 + abs(x)), 1e6),
    "Tan": (np.tan, 100),
}
ENDLESS = {"Mish", "Selu", "Celu", "Swish", "Softsign"}  # NaN, or the limit, for infinity
EXACT = {"Sin": 2.5, "Cos": 2.5, "Exp": 2, "Log": 1.5, "Tanh": 5, "Softplus": 3, "Round": 0}


@pytest.mark.parametrize("kind", FUNCTIONS)
def test_functions_of_elements_are_those_of_double_precision(kind: str, tmp_path: Path) -> None:
    """To some units in the last place, with and without wide vectors; endless arguments too."""
    function, most = FUNCTIONS[kind]
    text = f"(float[n] x) => (float[m] y) {{ y = {kind}(x) }}"
    proto = parser.parse_model(HEAD.replace("23", "24") + text)
    random = np.random.default_rng(1)
    x = np.concatenate([random.uniform(-s, s, 5000) for s in (most, most**0.5, 1, 1e-3)])
    x = np.abs(x) if kind == "Log" else x
    x = np.concatenate([x, [0.0, -0.0, 1e-40, np.nan, np.inf, -np.inf]]).astype(np.float32)
    with np.errstate(all="ignore"):
        wanted = function(x.astype(np.float64))
        unit = np.spacing(np.maximum(np.abs(wanted), 1e-37).astype(np.float32))
        if kind not in EXACT:
            unit = np.maximum(unit, np.float32(1e-7))
    for cpu in ((), "native"):
        build = packer.Build(cpu=cpu)
        path = packer.export_library(packer.from_onnx(proto), tmp_path / "m.so", build=build)
        found = runtime.load(path)["main"](x).numpy().astype(np.float64)
        is_number = np.isfinite(wanted)
        error = np.abs(found[is_number] - wanted[is_number]) / unit[is_number]
        assert error.max() <= EXACT.get(kind, 4), x[is_number][error.argmax()]
        same = np.isclose(found, wanted.astype(np.float32), equal_nan=True)[-3:]
        assert same.all() or kind in ENDLESS, found[-3:]


@pytest.mark.parametrize("n", [1, 2, 4, 7, 30, 64])
def test_transforms_of_any_length_are_numpys(n: int, tmp_path: Path) -> None:
    """Both directions, a half, a longer one, and of windows."""
    nodes = "a = DFT(x, , one) b = DFT<inverse=1>(x, , one) c = DFT<onesided=1>(r, , one)"
    nodes += " d = DFT(x, more, one) e = STFT(s, step, w)"
    text = (
        f"(float[3,{n},2] x, float[3,{n},1] r, float[2,{3 * n + 5},1] s, float[{n}] w) =>"
        " (float[i,j,k] a, float[i,j,k] b, float[i,l,k] c, float[i,o,k] d, float[p,q,l,k] e)"
        f" <int64 one = {{1}}, int64 more = {{{n + 2}}}, int64 step = {{{n // 2 + 1}}}>"
    )
    proto = parser.parse_model(f"{HEAD}{text} {{ {nodes} }}")
    x, r, s, w = map(given, ((3, n, 2), (3, n, 1), (2, 3 * n + 5, 1), (n,)))
    main = runtime.load(packer.export_library(packer.from_onnx(proto), tmp_path / "m.so"))["main"]
    found = [one.numpy().astype(np.float64) for one in main(x, r, s, w)]
    numbers = x[..., 0] + 1j * x[..., 1].astype(np.float64)
    starts = range(0, s.shape[1] - n + 1, n // 2 + 1)
    frames = np.stack([s[:, i : i + n, 0] * w for i in starts], 1)
    wanted = [np.fft.fft(numbers), np.fft.ifft(numbers), np.fft.rfft(r[..., 0].astype(np.float64))]
    wanted += [np.fft.fft(numbers, n + 2), np.fft.rfft(frames.astype(np.float64))]
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one[..., 0] + 1j * one[..., 1], other, atol=2e-5 * n**0.5)


@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize("axis", [0, 1])
def test_long_rows_are_sorted_and_equal_elements_keep_their_order(
    largest: int, axis: int, tmp_path: Path
) -> None:
    """Also the zeros of both signs; by a heap, by a sort, and by a sort of the better ones."""
    x = (np.random.default_rng(1).integers(-99, 99, (800, 750)) * -0.5).astype(np.float32)
    for k in (20, 60, 600):
        text = f"(float[800,750] x) => (float[p,q] y, int64[p,q] i) <int64[1] k = {{{k}}}>"
        check(f"{text} {{ y, i = TopK<axis={axis}, largest={largest}>(x, k) }}", x, tmp_path)


@pytest.mark.parametrize("repeats", ["1,1,1", "2,1,1", "1,3,1", "1,1,2", "2,3,2"])
def test_rows_are_repeated(repeats: str, tmp_path: Path) -> None:
    """One axis or several; rows longer and shorter than what is copied at once."""
    for shape in ((3, 4, 5), (2, 1, 300)):
        extents = ",".join(map(str, shape))
        text = f"(float[{extents}] x) => (float[p,q,r] y) <int64[3] k = {{{repeats}}}>"
        check(f"{text} {{ y = Tile(x, k) }}", given(shape), tmp_path)


def test_loops_are_vectors_of_the_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As its report says of each loop over elements."""
    monkeypatch.setenv("CC", "gcc")
    texts = [
        "(float[64,100] x) => (float[p,q] y) <int64 a = {0}> { y = CumSum(x, a) }",
        "(float[64,100] x) => (float[p,q] y) <int64[1] a = {0}> { y = ReduceSum(x, a) }",
        "(float[64,100] x, float[100] z) => (bool[p,q] y) { y = Greater(x, z) }",
        "(float[64,100] x) => (int32[p,q] y) { y = Cast<to=6>(x) }",
        "(double[64,100] x, double[64,1] z) => (double[p,q] y) { y = Mul(x, z) }",
    ]
    for index, text in enumerate(texts):
        report = tmp_path / f"{index}.txt"
        options = [f"-fopt-info-vec={report}"]
        made = packer.from_onnx(parser.parse_model(HEAD + text), options=options)
        packer.export_library(made, tmp_path / "m.so", build=packer.Build(cpu=()))
        assert "loop vectorized" in report.read_text(), text


def test_an_image_of_one_row_has_no_rows_of_padding(tmp_path: Path) -> None:
    """A wide dilation would make them most of the memory."""
    assert Image(1, 64, 1, 500, 16, padding=256).nfloats == 64 * (500 + 512)
    nodes = "u = Conv<pads=[0,64,0,64], dilations=[1,64]>(x, w) v = Relu(u)"
    nodes += " y = Conv<pads=[1,1,1,1]>(v, w3)"
    text = f"(float[1,32,1,300] x) => (float[p,q,r,s] y) {{ {nodes} }}"
    proto = parser.parse_model(HEAD + text)
    for name, shape in (("w", (32, 32, 1, 3)), ("w3", (8, 32, 3, 3))):
        weight = np.random.default_rng(1).normal(size=shape).astype(np.float32) / 30
        proto.graph.initializer.append(numpy_helper.from_array(weight, name))
    check(proto, given((1, 32, 1, 300)), tmp_path)
