"""Which inputs are state: by name, given, or none; what does not fit is refused or kept."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnx.reference
import pytest

import packer
import runtime
from packer.cli.load import model_lines

# A sum of all x, its mean over the calls, and a cache of all x along an axis in the middle.
MODEL = """
<ir_version: 10, opset_import: ["" : 23]>
network (float[batch, 1, 2] x, float[1] total, float[batch, past, 2] {past})
  => (float[batch, 2] y, float[1] total_next, float[batch, next, 2] {present})
  <int64[1] axis = {{1}}>
{{
  sum = ReduceSum<keepdims = 0>(x)
  one = Unsqueeze(sum, axis_0)
  total_next = Add(total, one)
  {present} = Concat<axis = 1>({past}, x)
  all = ReduceSum<keepdims = 0>({present}, axis)
  y = Add(all, total_next)
}}
"""
AXIS_0 = "<int64[1] axis = {{1}}, int64[1] axis_0 = {{0}}>"


def model(past: str = "rows", present: str = "all_rows") -> onnx.ModelProto:
    """The model above, with names of its cache."""
    text = MODEL.replace("<int64[1] axis = {{1}}>", AXIS_0)
    return onnx.parser.parse_model(text.format(past=past, present=present))


def library(folder: Path, made: onnx.ModelProto, **options: object) -> runtime.Module:
    """Export a model, and load the library."""
    module = packer.from_onnx(made, **options)
    return runtime.load(packer.export_library(module, folder / "model.so"))


STATE = {"total": "total_next", "rows": "all_rows"}


def test_given_states_are_appended_and_replaced(tmp_path: Path) -> None:
    """The axis that grows is in the middle; the other state has one shape."""
    loaded = library(tmp_path, model(), state=STATE)
    assert [one.name for one in (*loaded.inputs, *loaded.outputs)] == ["x", "y"]
    assert "state: 2, as 'total'; a session keeps it" in model_lines(loaded)
    session = loaded.session()
    random = np.random.default_rng(0)
    xs = random.normal(size=(20, 3, 1, 2)).astype(np.float32)
    for step, x in enumerate(xs, 1):
        right = xs[:step].sum((0, 2)) + xs[:step].sum()
        np.testing.assert_allclose(session["main"](x).numpy(), right, rtol=1e-4, atol=1e-4)
    assert session.length == 20


def test_cache_joined_with_an_empty_one_is_appended(tmp_path: Path) -> None:
    """As torch.jit.trace writes a DynamicCache that takes the past: a Concat of one value."""
    made = model()
    made.graph.node.insert(0, onnx.helper.make_node("Concat", ["rows"], ["joined"], axis=1))
    (concat,) = (one for one in made.graph.node if list(one.output) == ["all_rows"])
    concat.input[0] = "joined"
    loaded = library(tmp_path, made, state=STATE)
    assert [one.appended for one in loaded.model_record.states] == [False, True]
    session, x = loaded.session(), np.ones((1, 1, 2), np.float32)
    assert [session["main"](x).numpy()[0, 0] for _ in range(3)] == [3, 6, 9]


@pytest.mark.parametrize(
    ("past", "present"),
    [
        ("past_key_values.0.key", "present.0.key"),
        ("past.0.value", "present.0.value"),
        ("past_0", "present_0"),
        ("past_key_values_3_key", "present_3_key"),
        ("past_key_values.0.decoder.key", "present_key_values.0.decoder.key"),
    ],
)
def test_caches_are_found_by_name(past: str, present: str) -> None:
    """As exporters write them; a note says so, and how to keep them."""
    made = model("rows", "all_rows")
    for value in (*made.graph.input, *made.graph.output):
        value.name = {"rows": past, "all_rows": present}.get(value.name, value.name)
    for node in made.graph.node:
        for names in (node.input, node.output):
            names[:] = [{"rows": past, "all_rows": present}.get(one, one) for one in names]
    program = packer.from_onnx(made)
    assert program.table_row("main").param_names == ("x", "total")
    assert "1 inputs are state" in program._imported_code.notes[0]
    assert packer.from_onnx(made, state={}).table_row("main").num_args == 3


def test_pair_that_does_not_fit_remains(tmp_path: Path) -> None:
    """The note says why, and main has all inputs and outputs."""
    made = model()
    made.graph.input[2].name = "past_1"
    made.graph.node[3].input[0] = "past_1"
    made.graph.output[0].name = made.graph.node[5].output[0] = "present_1"
    program = packer.from_onnx(made)
    (note, *_) = program._imported_code.notes
    assert "look like state, and remain inputs: 'past_1' and 'present_1': shape, expected" in note
    assert program.table_row("main").num_args == 3


@pytest.mark.parametrize(
    ("state", "refused"),
    [
        ({"total": "y"}, r"state: 'total' and 'y': shape, expected \(1,\) again"),
        ({"totl": "y"}, "state: 'totl', expected an input of the model; near names: 'total'"),
        ({"total": "y_"}, "state: 'y_', expected an output of the model; near names: 'y'"),
        ({"total": "y", "rows": "y"}, "state: 'y', expected one state only"),
    ],
)
def test_wrong_states_are_refused(state: dict[str, str], refused: str) -> None:
    """Before anything is compiled, with the names."""
    with pytest.raises(packer.ExportError, match=refused):
        packer.from_onnx(model(), state=state)


def test_data_types_must_agree() -> None:
    """A state has one."""
    made = model()
    made.graph.output.append(onnx.helper.make_tensor_value_info("whole", 7, [1]))
    made.graph.node.append(onnx.helper.make_node("Cast", ["total"], ["whole"], to=7))
    with pytest.raises(packer.ExportError, match="data type, expected FLOAT, found INT64"):
        packer.from_onnx(made, state={"total": "whole"})


def test_sets_of_shapes_have_no_state() -> None:
    """One program has open lengths; several sets are refused with state."""
    sets = [{"x": (1, 1, 2), "rows": (1, 4, 2)}, {"x": (2, 1, 2), "rows": (2, 4, 2)}]
    with pytest.raises(packer.ExportError, match="expected one set of input shapes, found 2"):
        packer.from_onnx(model(), sets, state=STATE)


@pytest.mark.parametrize(
    ("words", "refused"),
    [
        (["rows"], "state: expected INPUT=OUTPUT, or only 'none', found 'rows'"),
        (["rows=a", "rows=b"], "state: expected each input once, found 'rows=b'"),
        (["none", "rows=a"], "state: expected INPUT=OUTPUT, or only 'none', found 'none'"),
    ],
)
def test_option_of_another_form_is_refused(tmp_path: Path, words: list[str], refused: str) -> None:
    """With one line, and no library."""
    onnx.save(model(), tmp_path / "model.onnx")
    options = [word for text in words for word in ("--state", text)]
    command = [sys.executable, "-m", "packer", "export", "model.so", "model.onnx", *options]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert refused in done.stderr
    assert not (tmp_path / "model.so").exists()


def test_option_and_table_choose_states(tmp_path: Path) -> None:
    """--state and packer.toml give the same program."""
    onnx.save(model(), tmp_path / "model.onnx")
    options = [word for pair in STATE.items() for word in ("--state", "=".join(pair))]
    command = [sys.executable, "-m", "packer", "export", "one.so", "model.onnx", *options]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    states = [f"{name}={output}" for name, output in STATE.items()]
    table = f'[module.m]\nkind = "onnx"\nmodel = "model.onnx"\nstate = {states}\n'
    (tmp_path / "packer.toml").write_text(table)
    command = [sys.executable, "-m", "packer", "export", "two.so"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    one, two = (runtime.load(tmp_path / name) for name in ("one.so", "two.so"))
    assert one.get_source() == two.get_source()
    assert "dso.state.append" in one.get_source()


@pytest.mark.parametrize("is_split", [False, True])
@pytest.mark.parametrize("options", ["", "is_causal = 1", "scale = 0.3"])
def test_attention_with_past_keys_is_a_cache(is_split: bool, options: str, tmp_path: Path) -> None:
    """Of the heads in one axis or in their own, with shared ones; beside ONNX's reference."""
    q, k = ("1, 4, seq, 8", "1, 2, seq, 8") if is_split else ("1, seq, 32", "1, seq, 16")
    counts = [] if is_split else ["q_num_heads = 4", "kv_num_heads = 2"]
    attributes = ", ".join([*counts, *([options] if options else [])])
    text = f"""
<ir_version: 10, opset_import: ["" : 23]>
step (float[{q}] q, float[{k}] k, float[{k}] v, float[1, 2, past, 8] past_0_key,
      float[1, 2, past, 8] past_0_value)
  => (float[{q}] y, float[1, 2, all, 8] present_0_key, float[1, 2, all, 8] present_0_value)
{{
  y, present_0_key, present_0_value =
    Attention{f"<{attributes}>" if attributes else ""}(q, k, v, , past_0_key, past_0_value)
}}
"""
    made = onnx.parser.parse_model(text)
    session = library(tmp_path, made).session()
    reference = onnx.reference.ReferenceEvaluator(made)
    random = np.random.default_rng(0)
    past = [np.zeros((1, 2, 0, 8), np.float32)] * 2
    for rows in (3, 1, 2):
        shapes = [(1, 4, rows, 8), *[(1, 2, rows, 8)] * 2]
        shapes = shapes if is_split else [(1, rows, 32), *[(1, rows, 16)] * 2]
        given = [random.normal(size=shape).astype(np.float32) for shape in shapes]
        names = ("q", "k", "v", "past_0_key", "past_0_value")
        right, *past = reference.run(None, dict(zip(names, [*given, *past], strict=True)))
        np.testing.assert_allclose(session["main"](*given).numpy(), right, rtol=1e-4, atol=1e-5)
    assert session.length == 6


ATTENTION = """
<ir_version: 10, opset_import: ["" : 21]>
attention (float[1, {heads}seq, 4] q, float[1, {heads}seq, 4] k, float[1, {heads}past, 4] past_0)
  => (float[1, {heads}seq, 4] y, float[1, {heads}total, 4] present_0) {{
  present_0 = Concat<axis = {axis}>(past_0, k)
  turned = Transpose<perm = [{perm}]>(present_0)
  scores = MatMul(q, turned)
  shares = Softmax<axis = -1>(scores)
  y = MatMul(shares, present_0)
}}
"""


@pytest.mark.parametrize(("heads", "perm"), [("2, ", "0, 1, 3, 2"), ("", "0, 2, 1")])
def test_attention_over_a_cache_that_remains_an_input(
    heads: str, perm: str, tmp_path: Path
) -> None:
    """The rows of keys are a sum of two open extents, as ONNX's reference has them."""
    made = onnx.parser.parse_model(ATTENTION.format(heads=heads, perm=perm, axis=2 if heads else 1))
    shape = (1, 2) if heads else (1,)
    random = np.random.default_rng(1)
    given = [random.normal(size=(*shape, n, 4)).astype(np.float32) for n in (3, 3, 5)]
    found = library(tmp_path, made, state={})["main"](*given)
    names = ("q", "k", "past_0")
    right = onnx.reference.ReferenceEvaluator(made).run(None, dict(zip(names, given, strict=True)))
    for one, other in zip(found, right, strict=True):
        np.testing.assert_allclose(one.numpy(), other, rtol=1e-5, atol=1e-6)
