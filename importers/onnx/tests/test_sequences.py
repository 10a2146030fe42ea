"""Sequences and optionals, beside ONNX Runtime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import packer
from runtime.error import PackerError

from .support.beside_ort import main_of, parsed

Array = np.ndarray[Any, Any]


def given(*shape: int) -> Array:
    """Small numbers of both signs."""
    return np.random.default_rng(0).normal(size=shape).round(1).astype(np.float32)


def at(number: int) -> Array:
    """A position."""
    return np.array(number, np.int64)


APPEND = """e = SequenceEmpty() s = Loop(n, t, e) <body = b (int64 i, bool c, seq(float) v)
  => (bool d, seq(float) w) { d = Identity(c) f = Cast<to=1>(i) u = Add(x, f)
    w = SequenceInsert(v, u) }>"""
MODELS: dict[str, tuple[str, list[list[Any]]]] = {
    "the data decides the position": (
        """(float[a,4] x, int64 i) => (float[p,4] y) { n = Neg(x) z = Concat<axis=0>(x, x)
          s = SequenceConstruct(x, n, z) y = SequenceAt(s, i) }""",
        [[given(3, 4), at(1)], [given(3, 4), at(-1)]],
    ),
    "a sequence is a result": (
        """(float[a,4] x) => (seq(float[b,4]) s, int64 n) { m = Neg(x)
          s = SequenceConstruct(x, m) n = SequenceLength(s) }""",
        [[given(3, 4)]],
    ),
    "a loop appends, and all is joined": (
        f"""(float[a,4] x, int64 n) => (float[b,4] y, float[k,c,4] z, float[c,k,4] r, int64 l)
          <bool t = {{1}}> {{ {APPEND} y = ConcatFromSequence<axis=0>(s)
          z = ConcatFromSequence<axis=0, new_axis=1>(s)
          r = ConcatFromSequence<axis=-2, new_axis=1>(s) l = SequenceLength(s) }}""",
        [[given(3, 4), at(4)], [given(1, 4), at(1)]],
    ),
    "a loop reads what it appended": (
        """(float[a] x, int64 n) => (seq(float[b]) s) <bool t = {1}, int64 last = {-1}> {
          e = SequenceConstruct(x) s = Loop(n, t, e) <body = b (int64 i, bool c, seq(float[p]) v)
            => (bool d, seq(float[q]) w) { d = Identity(c) y = SequenceAt(v, last)
              z = Concat<axis=0>(y, x) w = SequenceInsert(v, z) }> }""",
        [[given(3), at(4)], [given(2), at(0)]],
    ),
    "the first twelve, or fewer": (
        """(float[a] x, int64 n) => (float[b] y) <bool t = {1}, float zero = {0},
          int64[1] first = {0}, int64[1] most = {12}, int64 last = {-1}> {
          g = Greater(x, zero) p = Compress<axis=0>(x, g) z = Concat<axis=0>(p, p, p, p)
          v = Slice(z, first, most, first) e = SequenceConstruct(v)
          s = Loop(n, t, e) <body = b (int64 i, bool c, seq(float[q]) w)
            => (bool d, seq(float[r]) u) { d = Identity(c) u = SequenceInsert(w, v) }>
          y = SequenceAt(s, last) }""",
        [[given(3), at(2)], [given(40), at(1)]],
    ),
    "the first twelve of twice the first twelve": (
        """(float[a] x, int64 n) => (float[b] y) <bool t = {1}, float zero = {0},
          int64[1] first = {0}, int64[1] most = {12}, int64 last = {-1}> {
          g = Greater(x, zero) p = Compress<axis=0>(x, g) z = Concat<axis=0>(p, p, p, p)
          f = Slice(z, first, most, first) k = Concat<axis=0>(f, f)
          v = Slice(k, first, most, first) e = SequenceConstruct(v)
          s = Loop(n, t, e) <body = b (int64 i, bool c, seq(float[q]) w)
            => (bool d, seq(float[r]) u) { d = Identity(c) u = SequenceInsert(w, v) }>
          y = SequenceAt(s, last) }""",
        [[given(3), at(2)], [given(40), at(1)]],
    ),
    "parts of an open extent": (
        """(float[a,4] x, int64 i) => (float[b,4] y) <int64 two = {2}> {
          s = SplitToSequence<axis=0>(x, two) y = SequenceAt(s, i) }""",
        [[given(5, 4), at(2)], [given(6, 4), at(0)]],
    ),
    "parts of a size that data decides": (
        "(float[a,2] x, int32 n) => (seq(float[b,2]) s) { s = SplitToSequence(x, n) }",
        [[given(9, 2), np.array(n, np.int32)] for n in (2, 3, 9, 20)]
        + [[given(0, 2), np.array(3, np.int32)]],
    ),
    "parts of sizes that data decides": (
        "(float[2,a] x, int64[n] k) => (seq(float[2,b]) s) { s = SplitToSequence<axis=-1>(x, k) }",
        [[given(2, 6), np.array(k)] for k in ([2, 4], [1, 0, 3, 2], [6])],
    ),
    "columns": (
        """(float[4,a] x, int64 i) => (float[4] y) { s = SplitToSequence<axis=1, keepdims=0>(x)
          y = SequenceAt(s, i) }""",
        [[given(4, 5), at(4)]],
    ),
    "parts that are known": (
        """(float[a,6] x) => (float[a,6] y) <int64 four = {4}, int64 one = {1}> {
          s = SplitToSequence<axis=1>(x, four) b = SequenceAt(s, one)
          r = SequenceErase(s, one) q = SequenceInsert(r, b, z)
          y = ConcatFromSequence<axis=1>(q) }""".replace("int64 one", "int64 z = {0}, int64 one"),
        [[given(5, 6)]],
    ),
    "erased and inserted where data says": (
        """(float[a] x, int64 i, int64 j) => (float[b] y, seq(float[c]) r) { n = Neg(x)
          z = Concat<axis=0>(x, x) s = SequenceConstruct(x, n, z) r = SequenceErase(s, i)
          q = SequenceInsert(r, n, j) y = ConcatFromSequence<axis=0>(q) }""",
        [[given(3), at(1), at(0)], [given(3), at(-1), at(-1)]],
    ),
    "branches of sequences": (
        """(float[a] x, bool c) => (seq(float[b]) s, int64 n) { n = SequenceLength(s)
          s = If(c) <then_branch = t () => (seq(float[p]) u) { u = SequenceConstruct(x, x) },
            else_branch = e () => (seq(float[q]) v) { v = SequenceEmpty() }> }""",
        [[given(3), np.array(True)], [given(3), np.array(False)]],
    ),
    "a function for each tensor": (
        """(seq(float[a]) s, float[1] x) => (seq(float[b]) r) { r = SequenceMap(s, x) <
          body = b (float[p] y, float[1] z) => (float[p] w) { w = Mul(y, z) }> }""",
        [[[given(3), given(5)], given(1)], [[], given(1)]],
    ),
}


def plain(value: Any) -> Any:
    """Return a result with arrays for tensors."""
    return [plain(one) for one in value] if isinstance(value, list | tuple) else np.asarray(value)


@pytest.mark.parametrize("name", MODELS)
def test_sequences(name: str, tmp_path: Path) -> None:
    """Each result is that of ONNX Runtime; a sequence is a tuple."""
    text, calls = MODELS[name]
    model = parsed(text)
    main = main_of(model, tmp_path)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    names = [one.name for one in session.get_inputs()]
    for values in calls:
        expected = session.run(None, dict(zip(names, values, strict=True)))
        found = main(*values)
        found = [found] if len(expected) == 1 else found
        np.testing.assert_equal(plain(found), plain(expected))


def test_the_record_names_the_types() -> None:
    """As ONNX's text form writes them."""
    text = "(optional(seq(float[4])) x, optional(int32[2]) z) => (bool y, bool w)"
    text += "{ y = OptionalHasElement(x) w = OptionalHasElement(z) }"
    inputs = packer.from_onnx(parsed(text)).inputs
    assert [one.dtype for one in inputs] == ["optional(seq(float32))", "optional(int32)"]


def test_an_optional_is_none_or_a_value(tmp_path: Path) -> None:
    """The value of None is refused with the node."""
    main = main_of(
        parsed("(optional(float[4]) x) => (float[4] y) { y = OptionalGetElement(x) }"), tmp_path
    )
    assert main(given(4)).numpy().tolist() == given(4).tolist()
    with pytest.raises(ValueError, match=r"'y' \(OptionalGetElement\): expected an optional with"):
        main(None)


BAD_CALLS: dict[str, tuple[list[Any], str]] = {
    "a position": (
        [[given(4)], at(1)],
        r"\(SequenceAt\): position 1 in a sequence of 1 tensors, ex",
    ),
    "a negative one": ([[given(4)], at(-2)], r"position -2 in .* of 1 tensors, expected -1 to 0"),
    "no sequence": ([given(4), at(0)], r"expected a tuple, found a tensor"),
    "no tensor": ([[3], at(0)], r"\(SequenceAt\): expected a tensor, found int"),
    "a rank": ([[given(4, 1)], at(0)], r"\(SequenceAt\): 2 dimensions, expected 1"),
    "an extent": ([[given(5)], at(0)], r"'y' of float32: extent of axis 0, expected 4, found 5"),
    "a data type": ([[at(1)[None]], at(0)], r"dtype, expected float32, found int64"),
}


@pytest.mark.parametrize("name", BAD_CALLS)
def test_a_call_is_refused_with_node_and_numbers(name: str, tmp_path: Path) -> None:
    """No tensor of the caller is read that has another type."""
    values, words = BAD_CALLS[name]
    main = main_of(
        parsed("(seq(float[4]) s, int64 i) => (float[4] y) { y = SequenceAt(s, i) }"), tmp_path
    )
    with pytest.raises((ValueError, TypeError, IndexError), match=words):
        main(*values)


BAD_PARTS: dict[str, tuple[str, list[int] | int, str]] = {
    "none": ("int64", 0, "Range: delta, expected 1 to 9223372036854775807, found 0"),
    "a negative size": ("int64", -1, "Split: a part, expected 0 to 6, found -1"),
    "fewer": ("int64[n]", [2, 3], "Split: elements of all parts, expected 6 to 6, found 5"),
    "more": ("int64[n]", [2, 5], "Split: a part, expected 0 to 6, found 7"),
    "a negative one": ("int64[n]", [5, -2, 3], "Split: a part, expected 0 to 0, found -2"),
}


@pytest.mark.parametrize("name", BAD_PARTS)
def test_sizes_of_parts_are_compared_with_the_extent(name: str, tmp_path: Path) -> None:
    """No element is left out, and no part is cut."""
    type_, sizes, words = BAD_PARTS[name]
    text = f"(float[6] x, {type_} k) => (seq(float[b]) s) {{ s = SplitToSequence(x, k) }}"
    main = main_of(parsed(text), tmp_path)
    with pytest.raises(IndexError, match=words):
        main(given(6), np.array(sizes))


REFUSED = {
    "an empty sequence": (
        "(int64 i) => (float[p] y) { s = SequenceEmpty() y = SequenceAt(s, i) }",
        r"\(SequenceAt\): expected a tensor, found an empty sequence",
    ),
    "a known position": (
        """(float[4] x) => (float[p] y) <int64 i = {1}> { s = SequenceConstruct(x)
          y = SequenceAt(s, i) }""",
        r"\(SequenceAt\): position 1 in a sequence of 1 tensors, expected -1 to 0",
    ),
    "ranks": (
        """(float[4] x, int64 i) => (float[p] y) <int64[1] o = {0}> { z = Unsqueeze(x, o)
          s = SequenceConstruct(x, z) y = SequenceAt(s, i) }""",
        r"\(SequenceAt\): the rank of the tensors of seq\(float32\), expected one for all",
    ),
    "data types": (
        """(seq(float[4]) s, int64[4] x) => (seq(float[4]) y) { y = SequenceInsert(s, x) }""",
        r"\(SequenceInsert\): expected a tensor of float32 as the others, found int64",
    ),
    "parts": (
        "(float[4] x) => (seq(float[p]) y) <int64 n = {0}> { y = SplitToSequence(x, n) }",
        r"\(SplitToSequence\): input 'split', expected a number of at least 1, found 0",
    ),
    "parts of a scalar": (
        "(float x, int64 n) => (seq(float) y) { y = SplitToSequence(x, n) }",
        r"\(SplitToSequence\): input 'input', expected an axis, found a scalar",
    ),
    "a table of sizes": (
        "(float[4] x, int64[2,2] n) => (seq(float[p]) y) { y = SplitToSequence(x, n) }",
        r"\(SplitToSequence\): input 'split', expected a number or a vector, found several axes",
    ),
    "a data type": (
        """(float[4] x) => (seq(float[4]) y) { e = SequenceEmpty <dtype = 99>()
          y = SequenceInsert(e, x) }""",
        r"\(SequenceEmpty\): attribute 'dtype': data type 99, expected one of 1 to",
    ),
    "nested": (
        "(seq(seq(float[4])) s, int64 i) => (seq(float[4]) y) { y = SequenceAt(s, i) }",
        r"input 's' is a sequence of a sequence; unsupported",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_model_is_refused_with_the_node(name: str) -> None:
    """While packing."""
    text, words = REFUSED[name]
    with pytest.raises(PackerError, match=words):
        packer.from_onnx(parsed(text))


def test_several_sets_of_shapes_are_refused() -> None:
    """A call chooses a set by the shapes of tensors."""
    model = parsed("(seq(float[a]) s, int64 i) => (float[b] y) { y = SequenceAt(s, i) }")
    with pytest.raises(PackerError, match="'s' is a sequence or an optional, expected one set"):
        packer.from_onnx(model, input_shapes=[{}, {}])


def test_a_scan_with_a_batch(tmp_path: Path) -> None:
    """As opset 8 has it: each entry has separate states."""
    text = """<ir_version: 3, opset_import: ["" : 8]> g (float[b,2] h, float[b,t,2] x)
      => (float[b,2] y, float[b,t,2] z) { y, z = Scan<num_scan_inputs=1, directions=[1], body = b
        (float[2] g, float[2] u) => (float[2] s, float[2] o)
        { s = Add(g, u) o = Mul(s, u) }>(, h, x) }"""
    main = main_of(onnx.parser.parse_model(text), tmp_path)
    h, x = given(3, 2), given(3, 4, 2)
    y, z = main(h, x)
    sums = h[:, None] + x[:, ::-1].cumsum(1)
    np.testing.assert_allclose(y.numpy(), sums[:, -1], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(z.numpy(), sums * x[:, ::-1], rtol=1e-5, atol=1e-6)
