"""Functions of elements, and one for C callers."""

import math

from numba import carray, cfunc, guvectorize, vectorize


@vectorize(["int64(int64, int64)", "float32(float32, float32)", "float64(float64, float64)"])
def add(x, y):
    """Adds."""
    return x + y


@vectorize(["float64(float64)"])
def root(x):
    if x < 0:
        raise ValueError("negative element")
    return math.sqrt(x)


@vectorize(["boolean(int32, int32)"])
def less(x, y):
    return x < y


@vectorize(["f8(f8, f8)", "f4(f4, f4)"])
def wide_first(x, y):
    return x + y


@vectorize(["i1(i1, i1)", "f4(f4, f4)", "i8(i8, i8)", "c8(c8, c8)", "f8(f8, f8)", "c16(c16, c16)"])
def in_turn(x, y):
    return x + y


@vectorize(["u8(u8, b1)", "f8(i4, f4)", "i4(i4, i4)", "c16(i8, c8)"])
def mixed(x, y):
    return x + y


@guvectorize(["(f8[:], f8, f8[:])", "(f4[:], f4, f4[:])", "(i4[:], i4, i4[:])"], "(n),()->(n)")
def exact_first(x, by, out):
    for i in range(len(x)):
        out[i] = x[i] + by


@guvectorize(["(float64[:], float64, float64[:])"], "(n),()->(n)")
def shift(x, by, out):
    for i in range(len(x)):
        out[i] = x[i] + by


@guvectorize(["(float64[:,:], float64[:,:], float64[:,:])"], "(m,n),(n,p)->(m,p)")
def product(a, b, out):
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            total = 0.0
            for k in range(a.shape[1]):
                total += a[i, k] * b[k, j]
            out[i, j] = total


@guvectorize(["(float64[:], float64[:], float64[:])"], "(n)->(),()")
def ends(x, low, high):
    low[0], high[0] = x.min(), x.max()


@cfunc("float64(CPointer(float64), int64)")
def total(address, n):
    return carray(address, n).sum()
