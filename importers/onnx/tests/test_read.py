"""A model is read into values that all have a type and a shape."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
import pytest
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from dso_packer_onnx.operator import shape_of
from dso_packer_onnx.read import fix_inputs, read_model, with_shapes
from runtime.error import PackerError

from .small_models import INT64, classifier, model, node, ones, relu, unknown, value, weight

DATA = Path(onnx.__file__).parent / "backend/test/data"


def shapes(made: ir.Model) -> dict[str, tuple[int | str, ...]]:
    """Return the shape of each output of a node."""
    return {one.name: shape_of(one) for n in made.graph for one in n.outputs}


def run(made: ir.Model | onnx.ModelProto, **inputs: np.ndarray) -> list[np.ndarray]:
    """Run a model by ONNX Runtime."""
    proto = ir.to_proto(made) if isinstance(made, ir.Model) else made
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    return session.run(None, inputs)


@pytest.mark.parametrize("form", ["path", "str", "bytes", "proto"])
def test_a_model_comes_as_path_bytes_or_message(tmp_path: Path, form: str) -> None:
    """All give the same graph; the message of the caller does not change."""
    proto = classifier()
    before = proto.SerializeToString()
    path = tmp_path / "model.onnx"
    path.write_bytes(before)
    given = {"path": path, "str": str(path), "bytes": before, "proto": proto}[form]
    assert shapes(with_shapes(read_model(given)))["y"] == (1, 5)
    assert proto.SerializeToString() == before


def test_values_that_follow_from_shapes_are_weights() -> None:
    """The nodes that compute the target of a Reshape are gone, and the result is the same."""
    proto = classifier()
    made = with_shapes(read_model(proto))
    assert [n.op_type for n in made.graph] == [
        "Conv",
        "Relu",
        "GlobalAveragePool",
        "Reshape",
        "Gemm",
    ]
    x = np.random.default_rng(1).normal(size=(1, 3, 4, 4)).astype(np.float32)
    assert np.array_equal(run(made, x=x)[0], run(proto, x=x)[0])


def test_shapes_are_given_again_and_again_over_one_copy_of_the_weights() -> None:
    """Each set of shapes is a copy of the graph; the weights are shared."""
    read = read_model(classifier("batch"))
    one, eight = (with_shapes(read, {"x": (n, 3, 4, 4)}) for n in (1, 8))
    assert shapes(one)["y"] == (1, 5) and shapes(eight)["y"] == (8, 5)
    tensors = [made.graph.initializers["w"].const_value for made in (one, eight)]
    assert tensors[0] is tensors[1]
    x = np.ones((8, 3, 4, 4), np.float32)
    assert np.array_equal(run(eight, x=x)[0], run(classifier("batch"), x=x)[0])


def test_a_symbolic_batch_is_the_first_extent() -> None:
    """The values between have it too, and the model runs for any batch."""
    made = with_shapes(read_model(classifier("batch")))
    assert shapes(made) == {
        "c": ("batch", 8, 4, 4),
        "r": ("batch", 8, 4, 4),
        "p": ("batch", 8, 1, 1),
        "flat": ("batch", 8),
        "y": ("batch", 5),
    }
    x = np.ones((3, 3, 4, 4), np.float32)
    assert np.array_equal(run(made, x=x)[0], run(classifier("batch"), x=x)[0])


def test_a_static_model_gets_a_symbolic_batch_by_its_shape() -> None:
    """The declared extent 1 of the inputs and outputs is then no longer one."""
    made = with_shapes(read_model(classifier()), {"x": ("n", 3, 4, 4)})
    assert shapes(made)["y"] == ("n", 5)


def test_a_name_has_one_value_in_all_inputs() -> None:
    """An extent that one input gives is known in the others."""
    proto = model(
        [node("Add", "a b", "y")], [value("a", "n", 2), value("b", "n", 2)], [unknown("y")]
    )
    made = with_shapes(read_model(proto), {"a": (4, 2)})
    assert [shape_of(v) for v in made.graph.inputs] == [(4, 2), (4, 2)]


def test_the_branch_of_a_known_condition_is_taken() -> None:
    """An If whose condition follows from the shapes is replaced by its branch."""
    branches = [
        helper.make_graph([node(op, "x", "t")], op, [], [onnx.ValueInfoProto(name="t")])
        for op in ("Neg", "Abs")
    ]
    nodes = [
        node("Size", "x", "n"),
        node("Equal", "n six", "c"),
        node("If", "c", "z", then_branch=branches[0], else_branch=branches[1]),
        node("Relu", "z", "y"),
    ]
    proto = model(nodes, [value("x", 2, 3)], [unknown("y")], [weight("six", np.int64(6))])
    made = with_shapes(read_model(proto))
    assert [n.op_type for n in made.graph if n.op_type != "Identity"] == ["Neg", "Relu"]
    x = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
    assert np.array_equal(run(made, x=x)[0], run(proto, x=x)[0])


def test_a_loop_keeps_the_shapes_that_it_carries() -> None:
    """ONNX leaves them open, since a Loop may change them."""
    body = helper.make_graph(
        [node("Add", "a one", "b"), node("Identity", "c", "d")],
        "body",
        [value("i", dtype=INT64), value("c", dtype=9), onnx.ValueInfoProto(name="a")],
        [value("d", dtype=9), onnx.ValueInfoProto(name="b")],
    )
    nodes = [node("Loop", "n t x", "y0", body=body), node("Neg", "y0", "y")]
    proto = model(
        nodes,
        [value("x", 2, 3), value("n", dtype=INT64)],
        [unknown("y")],
        [weight("one", np.float32(1)), weight("t", np.bool_(True))],
    )
    assert shapes(with_shapes(read_model(proto)))["y0"] == (2, 3)


def test_functions_are_inlined() -> None:
    """A call is replaced by the nodes of the function, of its other opset too."""
    function = helper.make_function(
        "local", "F", ["a"], ["b"], [node("Relu", "a", "b")], [helper.make_opsetid("", 17)]
    )
    call = helper.make_node("F", ["x"], ["y"], name="call", domain="local")
    proto = model([call], [value("x", 2)], [unknown("y")], functions=[function])
    proto.opset_import.append(helper.make_opsetid("local", 1))
    assert [n.op_type for n in read_model(proto).graph] == ["Relu"]


def test_nodes_are_sorted() -> None:
    """The order of a file does not matter, as long as there is no cycle."""
    nodes = [node("Relu", "a", "y"), node("Neg", "x", "a")]
    read = read_model(model(nodes, [value("x", 2)], [unknown("y")]))
    assert [n.op_type for n in read.graph] == ["Neg", "Relu"]


@pytest.mark.parametrize("opset", [9, 11, 13, 17, 19, 22])
def test_older_opsets_are_converted(opset: int) -> None:
    """An operator that had attributes has inputs now, with the same result."""
    proto = model(
        [node("ReduceMean", "x", "m", axes=[1]), node("Softmax", "m", "y", axis=1)]
        if opset < 18
        else [node("ReduceMean", "x axes", "m"), node("Softmax", "m", "y", axis=1)],
        [value("x", 2, 3, 4)],
        [unknown("y")],
        [weight("axes", np.array([1]))] if opset >= 18 else [],
        opset=opset,
    )
    made = with_shapes(read_model(proto))
    assert made.graph.opset_imports[""] == 23
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    np.testing.assert_allclose(run(made, x=x)[0], run(proto, x=x)[0], rtol=1e-6)


def test_a_newer_opset_that_onnx_knows_stays() -> None:
    """Nodes of opset 26 come from the official tests."""
    proto = relu()
    proto.opset_import[0].version = 26
    assert read_model(proto).graph.opset_imports[""] == 26


def test_every_output_has_a_node() -> None:
    """An input or a weight that is an output is copied."""
    proto = model([node("Relu", "x", "y")], [value("x", 2)], [unknown("y"), value("x", 2)])
    proto.graph.output.append(value("w", 3))
    proto.graph.initializer.append(ones("w", 3))
    made = with_shapes(read_model(proto))
    assert [v.name for v in made.graph.outputs] == ["y", "x_output", "w_output"]
    assert all(v.producer() is not None for v in made.graph.outputs)


def test_weights_in_other_files_are_mapped(tmp_path: Path) -> None:
    """A sparse file of 3 GiB is read without its memory, in which the weight is at the end."""
    (tmp_path / "w.bin").touch()
    os.truncate(tmp_path / "w.bin", 3 << 30)
    with (tmp_path / "w.bin").open("r+b") as file:
        file.seek((3 << 30) - 24)
        file.write(np.arange(6, dtype=np.float32).tobytes())
    proto = model(
        [node("Add", "x w", "s"), node("Gather", "big i", "g"), node("Add", "s g", "y")],
        [value("x", 2, 3)],
        [unknown("y")],
        [external("w", [2, 3], (3 << 30) - 24), weight("i", np.array([0, 5])[:, None])],
    )
    proto.graph.initializer.append(external("big", [(3 << 28) - 6], 0))
    (tmp_path / "model.onnx").write_bytes(proto.SerializeToString())
    before = memory_in_use()
    made = with_shapes(read_model(tmp_path / "model.onnx"), {"x": (2, 3)})
    found = made.graph.initializers["w"].const_value.numpy()
    assert np.array_equal(found, np.arange(6, dtype=np.float32).reshape(2, 3))
    assert memory_in_use() - before < 64 << 20


def external(name: str, dims: list[int], offset: int, location: str = "w.bin") -> onnx.TensorProto:
    """Make an initialiser whose data is in another file."""
    made = onnx.TensorProto(name=name, data_type=1, dims=dims, data_location=1)
    made.external_data.add(key="location", value=location)
    made.external_data.add(key="offset", value=str(offset))
    return made


def memory_in_use() -> int:
    """Return the bytes of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


def test_a_cache_of_links_is_read(tmp_path: Path) -> None:
    """A cache of downloads has the model and its data as links into one folder."""
    blobs, folder = tmp_path / "blobs", tmp_path / "snapshot"
    blobs.mkdir()
    folder.mkdir()
    (blobs / "1f").write_bytes(np.ones(6, np.float32).tobytes())
    proto = model(
        [node("Add", "x w", "y")], [value("x", 2, 3)], [unknown("y")], [external("w", [2, 3], 0)]
    )
    (blobs / "2e").write_bytes(proto.SerializeToString())
    (folder / "w.bin").symlink_to("../blobs/1f")
    (folder / "model.onnx").symlink_to("../blobs/2e")
    assert read_model(folder / "model.onnx").graph.initializers["w"].const_value.numpy().sum() == 6


CASES = sorted(path.parent.name for path in DATA.glob("node/*/model.onnx"))[::40]


@pytest.mark.parametrize("name", CASES)
def test_a_node_test_keeps_its_result(name: str) -> None:
    """A converted node computes the expected result, by the evaluator of ONNX.

    Inputs that decide a shape are given, as the refusal advises, or as the evaluator needs, which
    has no operators of the machine.
    """
    folder = DATA / "node" / name
    files = sorted(folder.glob("test_data_set_0/*.pb"), key=lambda one: (len(one.name), one.name))
    graph = onnx.load(folder / "model.onnx").graph
    names = [one.name for one in graph.input]
    if not all(one.type.HasField("tensor_type") for one in (*graph.input, *graph.output)):
        return  # sequences and optionals are operators of the machine
    try:
        source = read_model(folder / "model.onnx")
    except PackerError as error:
        assert "string" in str(error)
        return
    arrays = {one.stem: tensor(one) for one in files}
    inputs = {key: arrays[f"input_{index}"] for index, key in enumerate(names)}
    try:
        made = with_shapes(source)
    except PackerError as error:
        advice = re.search(r"; give (.*), which decides it, by input_values", str(error))
        assert advice, error
        fix_inputs(source, {key: inputs[key] for key in re.findall(r"'(.*?)'", advice[1])})
        made = with_shapes(source)
    of_machine = [one for one in made.graph if one.domain == "dso"]
    if decide := {v.name for one in of_machine for v in one.inputs[1:] if v and v.name in inputs}:
        fix_inputs(source, {key: inputs[key] for key in decide})
        made = with_shapes(source)
    taken = {one.name for one in made.graph.inputs}
    found = ReferenceEvaluator(ir.to_proto(made)).run(
        None, {key: array for key, array in inputs.items() if key in taken}
    )
    for index, array in enumerate(found):
        np.testing.assert_allclose(array, arrays[f"output_{index}"], rtol=1e-3, atol=1e-5)


def tensor(path: Path) -> np.ndarray:
    """Read a tensor of the official tests."""
    return numpy_helper.to_array(onnx.TensorProto.FromString(path.read_bytes()))
