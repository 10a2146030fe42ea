"""Calls for memcheck: each kind of argument, result, failure and refusal, without NumPy.

every_call.py PROBE DECLARED: probe.c and declared.c, compiled.
"""

from __future__ import annotations

import sys
from array import array

import runtime
from runtime._core import ElfFile, Library, TensorBase

FLOAT32 = (2, 32, 1)
# (function, arguments, whether it is refused or fails)
CALLS = [
    ("add", (40, 2), None),
    ("sum", tuple(range(40)), None),
    ("echo_u64", (2**64 - 1,), None),
    ("echo", (b"bytes" * 9,), None),
    ("echo", (0.5,), None),
    ("type_index", ("text",), None),
    ("scale", (array("f", [1.0, 2.0]), 2.0), None),
    ("first", (TensorBase(bytes(16), (4,), FLOAT32),), None),
    ("small", (11, "abcdefg", 7), None),
    ("object", (65, "a string on the heap", 1, 1), None),
    ("of_type", (9999,), (TypeError, ValueError)),
    ("not_utf8", (), ValueError),
    ("fail", ("KeyError", "message"), KeyError),
    ("fail_silently", (), RuntimeError),
    ("add", (object(), 2), TypeError),
    ("add", (2**70, 2), OverflowError),
    ("add", ("\ud800", 2), ValueError),
    ("scale", (memoryview(bytes(8)), 2.0), (TypeError, ValueError)),
]


# The same of declared.c; "counter" stands for a new handle.
DECLARED_CALLS = [
    ("counter_next", ("counter",), None),
    ("counter_child", ("counter",), None),
    ("counter_item", ("counter",), None),
    ("counter_free", ("counter",), None),
    ("counter_free", ("counter", object()), TypeError),
    ("call_with", ("counter", lambda handle: 0), None),
    ("other_use", ("counter",), TypeError),
    ("no_release", (), ValueError),
    ("open_both", (1,), None),
    ("texts", (), None),
    ("square", (1 + 2j,), None),
    ("line_of", ({"n": 4},), None),
    ("line_of", ({"z": 4},), TypeError),
    ("update", ({"x": 1.0, "scale": [1, 2], "name": "abc", "data": array("f", [2.0])},), None),
    ("update", ({"name": 3},), TypeError),
    ("total", ((1.0, 3),), None),
    ("count_texts", (["a", "bb"], 2), None),
    ("fill", (bytearray(4), 4), None),
    ("open_file", ("[Errno 2] No such file",), FileNotFoundError),
]


def main() -> None:
    """Load, call, unload; then open files that are not libraries."""
    path, declared = sys.argv[1:]
    for _ in range(3):
        module = runtime.load(path)
        for name, arguments, expected in CALLS:
            call(module[name], arguments, expected)
        del module
        call_declared(runtime.load(declared))
    ElfFile(path).symbol("__tvm_ffi_add")
    for opener in (Library, ElfFile):
        call(opener, (__file__,), runtime.LibraryLoadError)
        call(opener, ("no/such/file",), runtime.LibraryLoadError)
    print(f"{3 * (len(CALLS) + len(DECLARED_CALLS) + 2)} calls, 6 loads")


def call_declared(module) -> None:
    """Call with handles and structs, and by keywords."""
    for name, arguments, expected in DECLARED_CALLS:
        given = [module["counter_new"](3) if a == "counter" else a for a in arguments]
        call(module[name], given, expected)
    assert module["scale"](offset=0.0, x=1.0) == 2.0
    assert module["between"](to=5, from_=3) == 2


def call(function, arguments, expected) -> None:
    """Call, and see that it fails as it should or not at all."""
    try:
        function(*arguments)
    except Exception as error:
        if expected is None or not isinstance(error, expected):
            raise
    else:
        assert expected is None, function


main()
