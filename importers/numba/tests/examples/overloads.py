"""Functions of several signatures, which return the one that a call uses."""

from zlib import crc32

from numba import njit, types
from numba.extending import overload

_ARRAYS = [
    types.Array(types.float64, ndim, layout, readonly=is_readonly)
    for ndim, layout, is_readonly in (
        (1, "C", False),
        (1, "A", False),
        (2, "C", False),
        (2, "F", False),
        (2, "A", False),
        (1, "A", True),
    )
]


def number_of(*args):
    """The number of a signature; compiled code has that of its types."""


@overload(number_of)
def _number_of(*args):
    number = crc32(str(args).encode())
    return lambda *args: number


@njit(["(boolean,)", "(int32,)", "(float64,)"])
def promoted(x):
    return number_of(x)


@njit(["(int32,)", "(uint8,)"])
def narrow(x):
    return number_of(x)


@njit(["(uint64,)", "(complex128,)", "(unicode_type,)"])
def safe(x):
    return number_of(x)


@njit(["(int16,)", "(float32,)", "(uint32,)", "(complex64,)"])
def widths(x):
    return number_of(x)


@njit(["(Tuple((int64, int8)),)", "(Tuple((int32, float32)),)"])
def narrow_tuples(x):
    return number_of(x)


@njit(["(int64, float64)", "(float64, int64)", "(float64, float64)"])
def pairs(x, y):
    return number_of(x, y)


@njit([(kind,) for kind in _ARRAYS])
def arrays(x):
    return number_of(x)


@njit([(_ARRAYS[1], types.int64), (_ARRAYS[0], types.float64)])
def exact_first(x, y):
    return number_of(x, y)


@njit([(types.optional(types.float64),), (types.uint64,)])
def optional(x):
    return number_of(x)


@njit([(types.UniTuple(types.int64, 2),), (types.Tuple((types.int64, types.float64)),)])
def tuples(x):
    return number_of(x)


@njit("boolean(boolean)")
def as_boolean(x):
    return x


@njit("int8(int8)")
def as_int8(x):
    return x


@njit("uint8(uint8)")
def as_uint8(x):
    return x


@njit("int64(int64)")
def as_int64(x):
    return x


@njit("uint64(uint64)")
def as_uint64(x):
    return x


@njit("float32(float32)")
def as_float32(x):
    return x


@njit("float64(float64)")
def as_float64(x):
    return x


@njit("complex64(complex64)")
def as_complex64(x):
    return x
