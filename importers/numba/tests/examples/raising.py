"""Functions that raise while they hold memory; each raises for 1, and returns for 0."""

import numpy as np
from numba import guvectorize, njit, prange, types, vectorize
from numba.experimental import jitclass
from numba.typed import Dict, List
from numba.types import Tuple, float64, int64, unicode_type


@njit
def check(x):
    """Allocate, and raise before the memory is released."""
    made = np.full(50, x)
    if made.sum() > 0:
        raise ValueError("checked")
    return made


@njit
def told(i):
    if i > 35:
        raise ValueError("a loop", i)
    return 0.0


@njit("float64(int64)")
def an_array(x):
    made = np.zeros(100) + x
    if made.sum() > 0:
        raise ValueError("an array")
    return made[0]


@njit("float64[:](int64)")
def nested(x):
    outer = np.ones(5)
    made = check(x)
    for i in range(5):
        outer[i] = made[i]
    return outer


@njit("float64(float64[:], int64)")
def of_an_argument(x, i):
    view = x[1:] * 2.0
    return view[:3].sum() + check(i)[0]


@njit("int64(unicode_type, int64)")
def texts(text, x):
    longer = text + "é" * 20
    parts = [longer[1:], longer]
    again = text
    if x == 1:
        raise KeyError("texts")
    return len(parts) + len(again)


@njit("unicode_type(unicode_type, int64)")
def the_text_itself(text, x):
    if x == 1:
        raise ValueError(text + "!", len(text), text)
    return text


@njit("int64(int64)")
def containers(x):
    numbers = [np.zeros(3), np.ones(4)]
    names = List()
    table = Dict.empty(key_type=types.int64, value_type=types.float64[::1])
    for i in range(20):
        names.append("nnnnnnnn"[:i])
        table[i] = numbers[i % 2]
    known = {x, 2, 3}
    if x == 1:
        raise RuntimeError("containers")
    return len(known) + len(table) + len(names)


@njit("float64(int64)")
def inside_a_list(x):
    made = [np.full(10, i) for i in range(5)]
    total = 0.0
    for item in made:
        total += item.sum()
        for other in made:
            if x == 1 and other[0] == 3:
                raise ValueError("inside")
    return total


@jitclass([("data", float64[:]), ("name", unicode_type)])
class Own:
    """An object whose making may fail."""

    def __init__(self, n):
        self.data = np.zeros(20)
        if n == 1:
            raise ValueError("half made")
        self.name = "own" + str(n)


@njit("float64(int64)")
def an_object(x):
    first = Own(0)
    second = Own(x)
    return first.data.sum() + second.data.sum()


@njit("float64(int64)")
def too_large(x):
    kept = np.ones(20)
    made = np.zeros(2**40 * x * 64 + 1)
    return kept[0] + made[0]


@njit(Tuple((float64[:], unicode_type, int64))(int64))
def several(x):
    made = np.ones(10)
    name = "name" + str(x)
    if x == 1:
        raise ValueError("several")
    return made, name, x


@njit("float64[:](int64, int64)")
def caught(x, count):
    """The values of this function stay; the values of the function that raises go."""
    kept = [np.full(4, 2.0)]
    result = np.zeros(4)
    for _ in range(count):
        try:
            result[0] += check(x)[0]
        except Exception:
            kept.append(np.full(4, 3.0))
    for item in kept:
        for i in range(4):
            result[i] += item[i]
    return result


@njit("float64(int64)")
def caught_here(x):
    total = 0.0
    try:
        made = np.full(100, 7.0)
        if x == 1:
            raise ValueError("here")
        total += made.sum()
    except Exception:
        total -= 1.0
    return total


@njit("float64(int64)")
def caught_and_raised(x):
    made = np.full(100, 7.0)
    failed = False
    try:
        made[0] += check(x)[0]
    except Exception:
        failed = True
    if failed:
        raise KeyError("again")
    return made.sum()


@njit("float64[:](int64)", parallel=True)
def loops(x):
    out = np.zeros(40)
    for i in prange(40):
        made = np.full(20, 1.0)
        out[i] = made.sum() + check(x * (i % 10 == 5))[0] + told(x * i)
    return out


@njit("float64(int64)", parallel=True)
def lists_of_loops(x):
    """Memory of the threads goes to a list of the function, and replaces that of another."""
    rows = [np.zeros(3) for _ in range(64)]
    for _ in range(5):
        for i in prange(64):
            rows[i] = np.full(10, i + 1.0)
    total = 0.0
    for row in rows:
        total += row.sum()
    if x == 1:
        raise ValueError("after the loop")
    return total


@njit("int64(int64)", boundscheck=True)
def written(x):
    made = np.arange(20)
    return made[10 + 10 * x]


@vectorize(["float64(float64)"])
def elements(x):
    return check(x)[0] + 1.0


@guvectorize(["void(float64[:], float64[:])"], "(n)->(n)")
def rows(x, out):
    made = check(x[0])
    for i in range(len(x)):
        out[i] = made[i]
