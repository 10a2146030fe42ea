"""Models of relax, as real TVM has them: from its script, its own front end, and ONNX."""

import numpy as np
import onnx
import tvm
from onnx import TensorProto, helper, numpy_helper
from tvm import relax
from tvm.relax.frontend import nn
from tvm.relax.frontend.onnx import from_onnx
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tirx as T


@I.ir_module
class Branches:
    @R.function
    def main(c: R.Tensor((), "bool"), x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        if c:
            y = R.add(x, x)
        else:
            y = R.multiply(x, x)
        return y


@I.ir_module
class Recursion:
    @R.function(private=True)
    def loop(i: R.Tensor((), "int64"), x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cond: R.Tensor((), "bool") = R.less(i, R.const(100, "int64"))
        if cond:
            r = Recursion.loop(R.add(i, R.const(1, "int64")), R.add(x, R.const(0.5, "float32")))
        else:
            r = x
        return r

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        y = Recursion.loop(R.const(0, "int64"), x)
        return y


@I.ir_module
class Dynamic:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), w: R.Tensor((4, "m"), "float32")):
        n = T.int64()
        m = T.int64()
        with R.dataflow():
            y = R.matmul(x, w)
            z = R.nn.relu(y)
            r = R.reshape(z, (n * m,))
            s = R.concat((r, r), axis=0)
            R.output(z, r, s)
        return (z, r, s)


@I.ir_module
class Closures:
    @R.function
    def main(x: R.Tensor((2, 3), "float32"), y: R.Tensor((2, 3), "float32")):
        @R.function
        def outer(
            c1: R.Tensor((2, 3), "float32"),
        ) -> R.Callable((R.Tensor((2, 3), "float32"),), R.Tensor((2, 3), "float32")):
            @R.function
            def inner(x1: R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32"):
                s: R.Tensor((2, 3), "float32") = R.subtract(x1, c1)
                return s

            return inner

        in_call = outer(x)
        res = in_call(y)
        return res


@I.ir_module
class Tuples:
    @R.function
    def main(
        t: R.Tuple(R.Tensor((2,), "float32"), R.Tuple(R.Tensor(("n",), "float32"), R.Shape(["n"]))),
        k: R.Prim("int64"),
    ):
        a = t[0]
        b = t[1][0]
        s = R.add(a, a)
        return (s, (b, R.shape([k, 2])), a)


@I.ir_module
class Shapes:
    @R.function
    def main(
        s: R.Shape(["n", "m"]), x: R.Tensor(dtype="float32", ndim=2), v: R.Tensor((2,), "int64")
    ):
        n = T.int64()
        m = T.int64()
        p = T.int64()
        q = T.int64()
        sh = R.tensor_to_shape(v)
        y = R.match_cast(x, R.Tensor((p, q), "float32"))
        z = R.reshape(y, (q, p))
        w = R.add(z, R.const(1, "float32"))
        e = R.zeros(R.shape([n, m]), "float32")
        u = R.shape_of(w)
        return (w, e, sh, u)


@I.ir_module
class Passing:
    @R.function
    def main(x: R.Tensor((4, 4), "float32")):
        with R.dataflow():
            y = R.reshape(x, (16,))
            z = R.reshape(y, (2, 8))
            w = R.add(z, z)
            R.output(y, z, w)
        return (x, y, z, w)

    @R.function
    def same(x: R.Tensor((4, 4), "float32")):
        return x

    @R.function
    def constant():
        return R.const(np.arange(6, dtype="int16").reshape(2, 3))


@I.ir_module
class Views:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), k: R.Prim("int64")):
        n = T.int64()
        y = R.add(x, x)
        z = R.memory.view(y, R.shape([n * 2, 4]), dtype="int16")
        w = R.memory.view(z, R.shape([n]), relative_byte_offset=k)
        r = R.reshape(R.memory.view(w, R.shape([n, 2]), "int8"), R.shape([2, n]))
        u = R.memory.ensure_zero_offset(w)
        return (z, w, r, u, R.add(u, u))

    @R.function
    def given(x: R.Tensor((2, 16), "float32")):
        y = R.memory.view(x, R.shape([16]), relative_byte_offset=R.prim_value(64))
        return (y, R.memory.ensure_zero_offset(y), R.memory.view(x, dtype="int32"))

    @R.function
    def constant():
        c = R.const(np.arange(6, dtype="int16").reshape(2, 3))
        return R.memory.view(c, R.shape([4]), relative_byte_offset=R.prim_value(4))

    @R.function
    def unknown(x: R.Tensor(dtype="float32"), s: R.Shape(ndim=1)):
        return R.memory.view(x, s)

    @R.function
    def moved(x: R.Tensor((2, 16), "float32")):
        y = R.memory.view(x, R.shape([16]), relative_byte_offset=R.prim_value(64))
        return R.add(y, y)


@I.ir_module
class Types:
    @R.function
    def main(h: R.Tensor((8,), "float64"), i: R.Tensor((8,), "int8"), b: R.Tensor((8,), "bool")):
        x = R.astype(h, "float32")
        y = R.where(b, x, R.const(-1, "float32"))
        j = R.add(R.astype(i, "int32"), R.const(300, "int32"))
        return (R.astype(y, "float64"), j, R.logical_not(b))


@I.ir_module
class Sorting:
    @R.function
    def main(x: R.Tensor((3, "n"), "float32"), i: R.Tensor((20,), "int64")):
        with R.dataflow():
            a = R.sort(x, axis=1, descending=True)
            b = R.argsort(x, axis=-1, descending=False, dtype="int32")
            c = R.argsort(i, descending=True, dtype="int64")
            d = R.topk(x, k=4, axis=1, largest=True, ret_type="both", dtype="int32")
            e = R.topk(i, k=3, axis=0, largest=False, ret_type="values")
            R.output(a, b, c, d, e)
        return (a, b, c, d[0], d[1], e)


@I.ir_module
class Searching:
    @R.function
    def main(x: R.Tensor((2, 6), "int32"), p: R.Tensor((2, 5), "float32")):
        u = R.unique(x, sorted=False, return_index=True, return_inverse=True, return_counts=True)
        v = R.unique(x, sorted=True, axis=1)
        z = R.nonzero(x)
        s = R.call_dps_packed(
            "tvm.contrib.random.uniform",
            (
                R.prim_value(3),
                R.prim_value(4),
                R.prim_value(T.float64(0)),
                R.prim_value(T.float64(1)),
            ),
            out_ty=R.Tensor((2, 1), "float32"),
        )
        t = R.call_pure_packed(
            "vm.builtin.multinomial_from_uniform", p, s, ty_args=(R.Tensor((2, 1), "int64"),)
        )
        return (u, v, z, s, t)


@I.ir_module
class Asserting:
    @R.function(pure=False)
    def main(x: R.Tensor((2, 3), "float32"), c: R.Tensor((), "bool")):
        _ = R.assert_op(c, x, format="found {}")
        return x


class MLP(nn.Module):
    """Two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(16, 32), nn.Linear(32, 10)

    def forward(self, x):
        """Run it."""
        return self.fc2(nn.op.relu(self.fc1(x)))


class CNN(nn.Module):
    """Convolutions, pooling by strides, a normalisation, a head."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2D(3, 8, 3, padding=1, bias=True)
        self.conv2 = nn.Conv2D(8, 8, 3, stride=2, padding=1, bias=True)
        self.norm = nn.LayerNorm(8)
        self.head = nn.Linear(8, 5)

    def forward(self, x):
        """Run it."""
        y = nn.op.relu(self.conv1(x))
        y = nn.op.silu(self.conv2(y))
        y = nn.op.sum(y, [2, 3])
        return nn.op.softmax(self.head(self.norm(y)))


def with_weights(module: nn.Module, shape: tuple[int, ...], seed: int) -> tvm.IRModule:
    """A module of TVM's front end, with random weights bound."""
    made, params = module.export_tvm(spec={"forward": {"x": nn.spec.Tensor(shape, "float32")}})
    numbers = np.random.default_rng(seed)
    weights = {
        name: tvm.runtime.tensor(
            (numbers.standard_normal([int(e) for e in p.shape]) / 3).astype("float32")
        )
        for name, p in params
    }
    return relax.transform.BindParams("forward", weights)(made)


def from_onnx_file() -> tvm.IRModule:
    """A network of ONNX, whose batch size is not known."""
    numbers = np.random.default_rng(1)

    def weight(name: str, *shape: int) -> onnx.TensorProto:
        return numpy_helper.from_array((numbers.random(shape) / 2).astype("float32"), name)

    nodes = [
        helper.make_node("Conv", ["x", "w1", "b1"], ["c"], pads=[1] * 4, kernel_shape=[3, 3]),
        helper.make_node("BatchNormalization", ["c", "s", "b", "m", "v"], ["n"]),
        helper.make_node("Relu", ["n"], ["r"]),
        helper.make_node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("Gemm", ["f", "w2", "b2"], ["g"]),
        helper.make_node("Softmax", ["g"], ["y"]),
        helper.make_node("GlobalAveragePool", ["p"], ["z"]),
    ]
    weights = [
        *(weight("w1", 4, 3, 3, 3), weight("b1", 4), weight("s", 4), weight("b", 4)),
        *(weight("m", 4), weight("v", 4), weight("w2", 64, 10), weight("b2", 10)),
    ]
    values = {"x": ["n", 3, 8, 8], "y": ["n", 10], "z": ["n", 4, 1, 1]}
    x, y, z = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in values.items()
    )
    graph = helper.make_graph(nodes, "net", [x], [y, z], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    onnx.checker.check_model(model)
    return from_onnx(model)


MODELS = {
    "branches": lambda: Branches,
    "recursion": lambda: Recursion,
    "dynamic": lambda: Dynamic,
    "closures": lambda: relax.transform.LambdaLift()(Closures),
    "tuples": lambda: Tuples,
    "shapes": lambda: Shapes,
    "passing": lambda: Passing,
    "views": lambda: Views,
    "types": lambda: Types,
    "sorting": lambda: Sorting,
    "searching": lambda: Searching,
    "asserting": lambda: Asserting,
    "mlp": lambda: with_weights(MLP(), (1, 16), 0),
    "cnn": lambda: with_weights(CNN(), (2, 3, 8, 8), 1),
    "onnx": from_onnx_file,
}
