"""Functions in TVM's script, by library. Read by TVM's Python only."""

# TVM's parser reads these annotations unevaluated: no `from __future__ import annotations`.
from tvm.script import ir as I
from tvm.script import tirx as T


@I.ir_module
class Plain:
    """Shapes fixed and dynamic, strides, scalars, narrow floats, workspaces."""

    @T.prim_func
    def add_one(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        T.func_attr({"global_symbol": "add_one"})
        for i in range(8):
            B[i] = A[i] + T.float32(1)

    @T.prim_func
    def transpose(x: T.handle, y: T.handle):
        T.func_attr({"global_symbol": "transpose"})
        n = T.int64()
        m = T.int64()
        s = T.int64()
        t = T.int64()
        X = T.match_buffer(x, (n, m), "float64", strides=(s, t))
        Y = T.match_buffer(y, (m, n), "float64")
        for i, j in T.grid(n, m):
            Y[j, i] = X[i, j]

    @T.prim_func
    def integers(a: T.int64, b: T.int32, c: T.bool, A: T.Buffer((3,), "int64")):
        T.func_attr({"global_symbol": "integers"})
        A[0] = a
        A[1] = T.Cast("int64", b)
        A[2] = T.Cast("int64", c)

    @T.prim_func
    def widen(A: T.Buffer((8,), "bfloat16"), B: T.Buffer((8,), "float32")):
        T.func_attr({"global_symbol": "widen"})
        for i in range(8):
            B[i] = T.Cast("float32", A[i])

    @T.prim_func
    def reverse(A: T.Buffer((20000,), "float32"), B: T.Buffer((20000,), "float32")):
        T.func_attr({"global_symbol": "reverse"})
        W = T.alloc_buffer((20000,), "float32")
        for i in range(20000):
            W[i] = A[i] * T.float32(2)
        for i in range(20000):
            B[i] = W[19999 - i]

    @T.prim_func
    def checked(k: T.int64, A: T.Buffer((4,), "int8")):
        T.func_attr({"global_symbol": "checked"})
        assert k > 3, "k is too small"
        A[0] = T.Cast("int8", k)


@I.ir_module
class Parallel:
    """A loop over all threads."""

    @T.prim_func
    def saxpy(a: T.float32, x: T.handle, y: T.handle):
        T.func_attr({"global_symbol": "saxpy"})
        n = T.int64()
        X = T.match_buffer(x, (n,), "float32")
        Y = T.match_buffer(y, (n,), "float32")
        for i in T.parallel(n):
            Y[i] = a * X[i] + Y[i]


@I.ir_module
class Packed:
    """Calls by name, out of the library."""

    @T.prim_func
    def tell(k: T.int64):
        T.func_attr({"global_symbol": "tell"})
        T.evaluate(T.call_packed("test.told", "hello", k))
        T.evaluate(T.call_packed("test.told", "rather a long text", T.float32(2.5), k))

    @T.prim_func
    def nowhere(k: T.int64):
        T.func_attr({"global_symbol": "nowhere"})
        T.evaluate(T.call_packed("test.nowhere", k))


@I.ir_module
class LlvmOnly:
    """Functions that TVM's C code generator writes no valid C for."""

    @T.prim_func
    def halve(A: T.Buffer((8,), "float16"), B: T.Buffer((8,), "float16")):
        T.func_attr({"global_symbol": "halve"})
        for i in range(8):
            B[i] = A[i] * T.float16(0.5)

    @T.prim_func
    def sort_of(x: T.handle, y: T.handle):
        T.func_attr({"global_symbol": "sort_of"})
        n = T.int64()
        X = T.match_buffer(x, (n,), "float32")
        Y = T.match_buffer(y, (n,), "float32")
        W = T.alloc_buffer((n,), "float32")
        for i in range(n):
            W[i] = X[i] * T.float32(2)
        for i in range(n):
            Y[i] = W[n - 1 - i]

    @T.prim_func
    def hand_over(A: T.Buffer((8,), "float32"), k: T.int64):
        T.func_attr({"global_symbol": "hand_over"})
        T.evaluate(T.call_packed("test.told", A, k, T.bool(True)))


@I.ir_module
class Constant:
    """A function that takes constants from C code in the same library."""

    @T.prim_func
    def scale(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        T.func_attr({"global_symbol": "scale"})
        for i in range(8):
            B[i] = A[i] * T.call_extern("float32", "test_weight", i)


@I.ir_module
class Kernels:
    """Functions whose loops run on a device."""

    @T.prim_func
    def scale(x: T.handle, y: T.handle):
        T.func_attr({"global_symbol": "scale"})
        n = T.int64()
        X = T.match_buffer(x, (n,), "float32")
        Y = T.match_buffer(y, (n,), "float32")
        for b in T.thread_binding((n + 63) // 64, thread="blockIdx.x"):
            for t in T.thread_binding(64, thread="threadIdx.x"):
                if b * 64 + t < n:
                    Y[b * 64 + t] = X[b * 64 + t] * T.float32(3)

    @T.prim_func
    def turn(A: T.Buffer((256,), "int32"), B: T.Buffer((256,), "int32"), k: T.int32):
        T.func_attr({"global_symbol": "turn"})
        for b in T.thread_binding(4, thread="blockIdx.x"):
            for t in T.thread_binding(64, thread="threadIdx.x"):
                W = T.alloc_buffer((64,), "int32", scope="shared")
                W[t] = A[b * 64 + t] + k
                B[b * 64 + t] = W[63 - t]


@I.ir_module
class Serial:
    """The same functions for the CPU: the expected results of the others."""

    @T.prim_func
    def scale(x: T.handle, y: T.handle):
        T.func_attr({"global_symbol": "scale"})
        n = T.int64()
        X = T.match_buffer(x, (n,), "float32")
        Y = T.match_buffer(y, (n,), "float32")
        for i in range(n):
            Y[i] = X[i] * T.float32(3)

    @T.prim_func
    def turn(A: T.Buffer((256,), "int32"), B: T.Buffer((256,), "int32"), k: T.int32):
        T.func_attr({"global_symbol": "turn"})
        for b, t in T.grid(4, 64):
            B[b * 64 + t] = A[b * 64 + 63 - t] + k
