"""Functions of every kind of argument and result."""

from collections import namedtuple

import numpy as np
from numba import njit, prange, types
from numba.types import NamedTuple, NamedUniTuple, Tuple, UniTuple, boolean, float64, int64

Point = namedtuple("Point", "x y")
point = NamedTuple((float64, int64), Point)
TABLE = np.arange(5.0)


class OwnError(ValueError):
    """An exception that only this file has."""


@njit
def helper(x):
    if x < 0:
        raise ValueError("negative")
    return np.sqrt(x)


@njit("float64(float64[::1])")
def dist(x):
    """The length of a vector."""
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i] * x[i]
    return helper(total)


@njit("float64(float64)")
def root(x):
    return helper(x)


@njit("float64[:,:](float64[:,:], float64)")
def scale(x, factor):
    return x * factor


@njit("float64(float64[:,::1])")
def first_row(x):
    return x[0].sum()


@njit("float64(float64[::1,:])")
def first_column(x):
    return x[:, 0].sum()


@njit(float64(types.Array(float64, 0, "C")))
def of_nothing(x):
    return x[()]


@njit("void(float64[:], float64)")
def fill(x, value):
    x[:] = value


@njit(float64(types.Array(float64, 1, "A", readonly=True)))
def total(x):
    return x.sum()


@njit("Tuple((int64[:], float64, boolean))(int64)")
def several(n):
    return np.arange(n), n / 2, n > 2


@njit(point(point))
def turned(p):
    return Point(float64(p.y), int64(p.x))


@njit(Tuple((int64, UniTuple(float64, 2)))(Tuple((UniTuple(float64, 2), int64))))
def nested(pair):
    return pair[1], pair[0]


@njit("complex128(complex128)")
def turn(z):
    return z * 1j


@njit("boolean(boolean, int8, uint64)")
def small(a, b, c):
    return a and b < 0 and c > 2**63


@njit("unicode_type(unicode_type, int64)")
def repeat(text, n):
    return text * n + "é€"


@njit((types.Bytes(types.uint8, 1, "C"),))
def count_zeros(data):
    count = 0
    for byte in data:
        count += byte == 0
    return count


@njit((types.Optional(int64),))
def or_none(x):
    if x is None:
        return None
    return x + 1 if x > 0 else None


@njit(["float64(float64)", "int64(int64)", "float64[:](float64[:])", "float32[:](float32[:])"])
def double(x):
    return x + x


@njit(
    ["int64(float64[:,::1])", "int64(float64[::1,:])", "int64(float64[:,:])", "int64(float64[:])"]
)
def layout(x):
    return x.ndim * 10 + x.flags.c_contiguous + 2 * x.flags.f_contiguous


@njit("int64(int64)")
def fails(x):
    if x == 1:
        raise ValueError("one")
    if x == 2:
        raise KeyError("k")
    if x == 3:
        raise OwnError("own")
    if x == 4:
        raise IndexError
    if x == 5:
        assert x != 5, "no five"
    if x == 6:
        return 1 // (x - 6)
    return x


@njit("int64(int64, float64, boolean)")
def tells(x, y, b):
    if x == 1:
        raise ValueError(f"bad {x}")
    if x == 2:
        raise ValueError("bad", x, y, b)
    if x == 3:
        raise OwnError("é" + str(x))
    return x


@njit("float64(int64)")
def frozen(i):
    return TABLE[i]


@njit("float64[:](float64[:])", parallel=True)
def parallel(x):
    made = np.empty_like(x)
    for i in prange(len(x)):
        made[i] = np.sin(x[i])
    return made


@njit("float64(float64, float64)")
def by_default(x, y=2.5):
    return x * y


@njit("int64(int64)")
def recursive(n):
    return n if n < 2 else recursive(n - 1) + recursive(n - 2)


@njit("int64[:](int64)")
def sorted_backwards(n):
    return np.sort(np.arange(n)[::-1])


@njit("int64(int64)")
def needs_python(x):
    y = x + 1
    print("a text", y)
    return y


def not_compiled(x):
    return x


unused = (NamedUniTuple, boolean)
