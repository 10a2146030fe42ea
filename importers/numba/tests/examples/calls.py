"""Functions that call themselves, functions of a tuple, and callbacks."""

from numba import cfunc, njit, vectorize


@njit("int64(int64, int64)")
def ackermann(m, n):
    if m == 0:
        return n + 1
    if n == 0:
        return ackermann(m - 1, 1)
    return ackermann(m - 1, ackermann(m, n - 1))


@njit("int64(int64, int64, int64)")
def tak(x, y, z):
    if y >= x:
        return z
    return tak(tak(x - 1, y, z), tak(y - 1, z, x), tak(z - 1, x, y))


@njit(["int64(int64)", "float64(float64)"])
def twice(x):
    return x if x <= 0 else twice(twice(x - 1) - 1)


@njit("float64(int64)")
def halves(x):
    return 1.0 if x < 1 else halves(x / 2) * 2 + x


@njit("float64(float64)")
def next_of(x):
    if x > 100:
        raise ValueError("too large")
    return x + 1


@njit("float64(float64)")
def double(x):
    return x * 2


FUNCTIONS = (next_of, double, next_of)


@njit
def apply(functions, x):
    for function in functions:
        x = function(x)
    return x


@njit("float64(float64)")
def of_a_global_tuple(x):
    return apply(FUNCTIONS, x)


@njit("float64(float64, int64)")
def of_a_tuple(x, i):
    return (next_of, double)[i](x)


@njit("float64(float64, int64)")
def of_a_list(x, i):
    functions = [next_of, double]
    return functions[i](x)


@njit("float64(float64, int64)")
def of_a_variable(x, i):
    function = next_of if i == 0 else double
    return function(x)


@cfunc("float64(float64, float64)")
def add(a, b):
    if a > 100:
        raise ValueError("no sum")
    return a + b


@cfunc("float64(float64, float64)", error_model="numpy")
def divide(a, b):
    return add(a, b) / b


@njit("float64(float64, int64)")
def of_callbacks(x, i):
    return (add, divide)[i](x, 0.0) + add(1, 2)


@vectorize(["float64(float64)"])
def each(x):
    return divide(x, 2.0)
