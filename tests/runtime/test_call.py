"""Safe calls: arguments, results, errors, the GIL, and what a call leaves behind."""

from __future__ import annotations

import ctypes
import enum
import sys
import threading
from array import array
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from runtime._core import Function, Library, TensorBase

Probe = Callable[[str], Function]
SOURCE = "probe.c"

# TVMFFITypeIndex (formats: safe call).
NONE, INT, BOOL, FLOAT, TENSOR, RAW_STR, BYTES = 0, 1, 2, 3, 7, 8, 9
SMALL_STR, SMALL_BYTES, STR_OBJECT, BYTES_OBJECT, MAP_OBJECT = 11, 12, 65, 66, 72


class _Level(enum.IntEnum):
    HIGH = 7


class _OnlyDLPack:
    """An array that has nothing but DLPack 1.x."""

    def __init__(self, source: Any) -> None:
        self.source = source

    def __dlpack__(self, **options: Any) -> Any:
        return self.source.__dlpack__(**options)


class _OnlyOldDLPack(_OnlyDLPack):
    """The same from before max_version."""

    def __dlpack__(self) -> Any:  # type: ignore[override]
        return self.source.__dlpack__()


class _GivesCapsule:
    """Hands out one ready capsule, whatever it is."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **_: Any) -> Any:
        return self.capsule


# ---- the function object


def test_function_knows_its_facts(library: Library) -> None:
    """Name, signature, documentation and owner come from the fact symbol and the look-up."""
    owner = object()
    add = library.function("add", owner)
    assert add is not None
    assert (add.name, add.signature) == ("add", "int64_t add(int64_t a, int64_t b)")
    assert add.__doc__ == "Add two numbers.\n\nSecond paragraph."
    assert add.owner is owner
    assert repr(add) == "<Function add: int64_t add(int64_t a, int64_t b)>"


def test_function_without_facts_has_no_signature(probe: Probe) -> None:
    """A library that others made can be called all the same."""
    count = probe("count")
    assert (count.signature, count.__doc__, repr(count)) == (None, None, "<Function count>")


@pytest.mark.parametrize("name", ["missing", "", "add\0", "\udc80", "__tvm_ffi_add"])
def test_unknown_name_is_none(library: Library, name: str) -> None:
    """No symbol, no function; the prefix is ours to add."""
    assert library.function(name, None) is None


# ---- arguments


@pytest.mark.parametrize(
    ("value", "type_index"),
    [
        (None, NONE),
        (3, INT),
        (_Level.HIGH, INT),
        (np.int8(3), INT),
        (np.uint64(3), INT),
        (True, BOOL),
        (np.bool_(True), BOOL),
        (1.5, FLOAT),
        (np.float16(1.5), FLOAT),
        (np.float64(1.5), FLOAT),
        (Decimal("1.5"), FLOAT),
        ("text", RAW_STR),
        (np.str_("text"), RAW_STR),
        (b"bytes", BYTES),
        (bytearray(b"bytes"), TENSOR),
        (memoryview(b"bytes"), TENSOR),
        (array("d", [1.0]), TENSOR),
        (np.zeros(()), TENSOR),
        (np.zeros((2, 3)), TENSOR),
        ((ctypes.c_int * 3)(), TENSOR),
        (_OnlyDLPack(np.zeros(3)), TENSOR),
        (TensorBase(b"1234", (4,), (1, 8, 1)), TENSOR),
    ],
    ids=lambda value: type(value).__name__,
)
def test_argument_travels_as(probe: Probe, value: object, type_index: int) -> None:
    """Each Python type has its type index."""
    assert probe("type_index")(value) == type_index


@pytest.mark.parametrize(
    "value",
    [None, 0, -1, 2**63 - 1, -(2**63), True, False, 0.1, float("inf"), "", "żółw 🐢", b"", b"a\0b",
     bytes(range(256))],
)  # fmt: skip
def test_argument_comes_back_as_it_went(probe: Probe, value: object) -> None:
    """Values survive the way there and back, type and all."""
    result = probe("echo")(value)
    assert result == value
    assert type(result) is type(value)


def test_numpy_scalars_keep_their_value(probe: Probe) -> None:
    """An integer scalar is an int, a float scalar a float, bool_ a bool."""
    echo = probe("echo")
    assert (echo(np.int16(-5)), echo(np.float32(0.5)), echo(np.bool_(True))) == (-5, 0.5, True)


def test_more_than_sixteen_arguments(probe: Probe) -> None:
    """Beyond the stack array the arguments go on the heap."""
    for count in (0, 1, 15, 16, 17, 1000):
        assert probe("sum")(*range(count)) == sum(range(count))
    assert probe("count")(*[b"bytes"] * 40) == 40


def test_keyword_argument_is_refused(probe: Probe) -> None:
    """C parameters have no keywords."""
    with pytest.raises(TypeError, match=r"^add: expected positional arguments only, found 'b'$"):
        probe("add")(1, b=2)


@pytest.mark.parametrize("value", [2**63, 2**64 - 1])
def test_u64_goes_and_comes_unsigned(probe: Probe, value: int) -> None:
    """The upper half of uint64 travels where the function declares it."""
    assert probe("echo_u64")(value) == value


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("add", 2**63, r"add: argument 1 'a': out of range, expected an int64, found 9223.*; "
                       r"declared as int64_t add\("),
        ("add", -(2**63) - 1, "expected an int64"),
        ("echo", 2**63, "^echo: argument 1: out of range, expected an int64, found 9223[0-9]*$"),
        ("echo_u64", 2**64, r"echo_u64: argument 1 'value': out of range, expected a uint64"),
        ("echo_u64", -(2**63) - 1, "expected a uint64"),
    ],
)  # fmt: skip
def test_wide_int_is_refused(probe: Probe, name: str, value: int, expected: str) -> None:
    """No integer is cut to size."""
    with pytest.raises(OverflowError, match=expected):
        probe(name)(value, 1)


@pytest.mark.parametrize("value", ["a\0b", "\ud800"])
def test_str_that_c_cannot_hold_is_refused(probe: Probe, value: str) -> None:
    """An embedded NUL would cut the text, a lone surrogate has no UTF-8."""
    with pytest.raises(ValueError, match=r"^echo: argument 1: expected a str "):
        probe("echo")(value)


@pytest.mark.parametrize(
    "value", [object(), {}, [1], 1j, np.complex64(1), np.datetime64("2020-01-01"), ...]
)
def test_unsupported_type_names_function_argument_and_type(probe: Probe, value: object) -> None:
    """The message says where, what is taken, what came, and the declaration."""
    expected = (
        r"^add: argument 2 'b': unsupported type, expected int, float, .*, "
        rf"found {type(value).__name__ if type(value).__module__ == 'builtins' else 'numpy'}"
        r".*; declared as int64_t add\(int64_t a, int64_t b\)$"
    )
    with pytest.raises(TypeError, match=expected):
        probe("add")(1, value)


def test_exception_of_an_argument_is_its_own(probe: Probe) -> None:
    """What __index__ or __dlpack__ raises arrives as itself."""

    class Broken:
        def __index__(self) -> int:
            raise ZeroDivisionError("mine")

    class BrokenArray:
        def __dlpack__(self, **_: object) -> object:
            raise KeyError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        probe("echo")(Broken())
    with pytest.raises(KeyError, match="mine"):
        probe("echo")(BrokenArray())


# ---- arrays


@pytest.mark.parametrize(
    ("dtype", "code", "bits"),
    [
        *((f"i{n}", 0, 8 * n) for n in (1, 2, 4, 8)),
        *((f"u{n}", 1, 8 * n) for n in (1, 2, 4, 8)),
        *((f"f{n}", 2, 8 * n) for n in (2, 4, 8)),
        *((f"c{n}", 5, 8 * n) for n in (8, 16)),
        ("?", 6, 8),
        ("l", 0, 64),
        ("<i4", 0, 32),
        (">i1", 0, 8),
    ],
)
def test_array_dtype(probe: Probe, dtype: str, code: int, bits: int) -> None:
    """A NumPy dtype has the DLPack dtype of the same meaning."""
    assert probe("dtype")(np.zeros(3, dtype)) == code * 1000000 + bits * 1000 + 1


@pytest.mark.parametrize("dtype", [">f4", ">u2", "S3", "U2", "V4", "g", "O", [("a", "f4")]])
def test_foreign_dtype_is_refused(probe: Probe, dtype: Any) -> None:
    """Foreign byte order, structs and text have no DLPack dtype."""
    with pytest.raises(
        TypeError, match=r"^dtype: argument 1: unsupported dtype, expected a native"
    ):
        probe("dtype")(np.zeros(3, dtype))


def test_dtype_without_buffer_is_refused(probe: Probe) -> None:
    """What the exporter says is the cause."""
    with pytest.raises(TypeError, match="expected an array with strides and a dtype") as caught:
        probe("dtype")(np.zeros(3, "M8[s]"))
    assert isinstance(caught.value.__cause__, ValueError)


def test_strides_count_elements(probe: Probe) -> None:
    """Shape, strides, data pointer and device are the array's own."""
    whole = np.arange(24, dtype="i2").reshape(4, 6)
    view = whole[::-2, 1::2]
    extent, stride = probe("extent"), probe("stride")
    assert (probe("ndim")(view), extent(view, 0), extent(view, 1)) == (2, 2, 3)
    assert (stride(view, 0), stride(view, 1)) == (-12, 2)
    assert probe("address")(view) == view.ctypes.data
    assert probe("device")(view) == 1


def test_many_dimensions(probe: Probe) -> None:
    """Up to NumPy's own limit, beyond the room that a call sets aside."""
    ndim = 32
    array = np.zeros((1,) * (ndim - 1) + (5,), "f8")
    assert (probe("ndim")(array), probe("stride")(array, ndim - 1)) == (ndim, 1)


def test_strides_between_elements_are_refused(probe: Probe) -> None:
    """A field of a packed struct does not lie on whole elements."""
    field = np.zeros(3, dtype=[("a", "i1"), ("b", "f4")])["b"]
    with pytest.raises(ValueError, match="expected strides of whole elements, found 5 bytes"):
        probe("stride")(field, 0)


def test_written_array_is_the_callers_own(probe: Probe) -> None:
    """No copy is made: the function writes into the array, over its strides."""
    values = np.ones(6, "f4")
    probe("scale")(values[::2], 3.0)
    assert values.tolist() == [3, 1, 3, 1, 3, 1]
    probe("scale")(_OnlyDLPack(values), 2.0)
    assert values.tolist() == [6, 2, 6, 2, 6, 2]


def _read_only() -> np.ndarray[Any, Any]:
    values = np.ones(4, "f4")
    values.flags.writeable = False
    return values


@pytest.mark.parametrize(
    "value",
    [
        _read_only(),
        memoryview(_read_only()),
        TensorBase(bytes(16), (4,), (2, 32, 1)),
    ],
    ids=["buffer", "memoryview", "TensorBase"],
)
def test_read_only_array_is_refused_where_it_is_written(probe: Probe, value: object) -> None:
    """`float *` needs a writable array, `const float *` does not."""
    expected = r"^scale: argument 1 'y': expected a writable (array|tensor), found a read-only one"
    with pytest.raises(ValueError, match=expected):
        probe("scale")(value, 2.0)
    assert probe("first")(value) in (0.0, 1.0)


def test_read_only_dlpack_is_refused_where_it_is_written(probe: Probe) -> None:
    """The flag of DLPack 1.x says it; before, the producer refuses."""
    expected = r"^scale: argument 1 'y': expected (a writable array|an array that can be shared), "
    with pytest.raises(ValueError, match=expected):
        probe("scale")(_OnlyDLPack(_read_only()), 2.0)
    with pytest.raises(ValueError, match="expected an array that can be shared"):
        probe("scale")(_OnlyOldDLPack(_read_only()), 2.0)


def test_tensor_goes_as_its_own_dltensor(probe: Probe) -> None:
    """Unaligned bytes are aligned first; an incomplete tensor is refused."""
    tensor = TensorBase(memoryview(b"x" + bytes(16))[1:], (2,), (0, 64, 1))
    address = probe("address")(tensor)
    assert (address % 64, address) == (0, np.asarray(tensor).ctypes.data)
    assert (probe("dtype")(tensor), probe("extent")(tensor, 0), probe("stride")(tensor, 0)) == (
        64001, 2, 1,
    )  # fmt: skip
    cut = TensorBase(b"1234", (2,), (0, 64, 1), incomplete=True)
    with pytest.raises(
        ValueError, match=r"^ndim: argument 1: expected a complete tensor"
    ) as caught:
        probe("ndim")(cut)
    assert "incomplete: shape (2,)" in str(caught.value.__cause__)


def test_array_is_released_after_the_call(probe: Probe) -> None:
    """A bytearray that a call looked at can be resized, whether the call went well or not."""
    data = bytearray(8)
    probe("ndim")(data)
    with pytest.raises(TypeError):
        probe("add")(data, object())
    with pytest.raises(RuntimeError):
        probe("fail_silently")(data)
    data.append(1)


# ---- DLPack


@pytest.mark.parametrize("wrapper", [_OnlyDLPack, _OnlyOldDLPack])
def test_dlpack_tensor(probe: Probe, wrapper: type) -> None:
    """Both generations of the protocol are read, in place."""
    values = np.arange(6, dtype="f4").reshape(2, 3)
    wrapped = wrapper(values)
    assert probe("address")(wrapped) == values.ctypes.data
    assert [probe("stride")(wrapped, i) for i in range(2)] == [3, 1]
    assert probe("dtype")(wrapped) == 2032001


def test_dlpack_producer_is_released(probe: Probe) -> None:
    """The deleter runs once, after good and bad calls."""
    values = np.ones(4, "f4")
    before = sys.getrefcount(values)
    for wrapper in (_OnlyDLPack, _OnlyOldDLPack):
        probe("first")(wrapper(values))
        with pytest.raises(RuntimeError):
            probe("fail_silently")(wrapper(values))
        with pytest.raises(TypeError):
            probe("add")(wrapper(values), object())
    assert sys.getrefcount(values) == before


def test_dlpack_that_the_producer_refuses(probe: Probe) -> None:
    """A BufferError of the producer is the cause of a ValueError that names the argument."""

    class Refuses:
        def __dlpack__(self, **_: object) -> object:
            raise BufferError("requires grad")

    with pytest.raises(ValueError, match=r"^first: argument 1 .*cannot; declared") as caught:
        probe("first")(Refuses())
    assert str(caught.value.__cause__) == "requires grad"


@pytest.mark.parametrize("capsule", [None, 3, "used"])
def test_dlpack_without_capsule_is_refused(probe: Probe, capsule: Any) -> None:
    """Something else than an unused capsule is no tensor."""
    if capsule == "used":
        capsule = np.ones(4).__dlpack__()
        probe("ndim")(_GivesCapsule(capsule))
    with pytest.raises(TypeError, match="__dlpack__ gave no unused 'dltensor' capsule, found"):
        probe("ndim")(_GivesCapsule(capsule))


_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Managed(ctypes.Structure):
    """DLManagedTensorVersioned, field by field (dlpack.h)."""

    _fields_ = [
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("manager_ctx", ctypes.c_void_p),
        ("deleter", _Deleter), ("flags", ctypes.c_uint64), ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]  # fmt: skip


def _capsule(managed: _Managed) -> Any:
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = (
        ctypes.py_object,
        [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p],
    )
    return new(ctypes.addressof(managed), b"dltensor_versioned", None)


def test_dlpack_device_tensor_without_strides(probe: Probe) -> None:
    """Any device goes through as it is, and NULL strides become compact ones."""
    shape = (ctypes.c_int64 * 3)(4, 5, 6)
    managed = _Managed(major=1, ndim=3, bits=32, code=2, lanes=1, device_type=2, shape=shape)
    assert probe("device")(_GivesCapsule(_capsule(managed))) == 2
    found = [probe("stride")(_GivesCapsule(_capsule(managed)), i) for i in range(3)]
    assert found == [30, 6, 1]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"major": 2}, r"expected DLPack version 1, found 2\.0"),
        ({"major": 1, "ndim": 65}, "expected at most 64 dimensions, found 65"),
        ({"major": 1, "ndim": -1}, "expected at most 64 dimensions, found -1"),
    ],
)
def test_dlpack_guards_release_the_tensor(probe: Probe, fields: Any, expected: str) -> None:
    """A tensor that is refused is handed back through its deleter."""
    deleted: list[int] = []
    managed = _Managed(deleter=_Deleter(deleted.append), **fields)
    with pytest.raises(ValueError, match=expected):
        probe("ndim")(_GivesCapsule(_capsule(managed)))
    assert deleted == [ctypes.addressof(managed)]


# ---- results


@pytest.mark.parametrize("text", ["", "x", "seven77", "ä🐢"])
def test_small_string_result(probe: Probe, text: str) -> None:
    """Up to seven bytes come inside the result."""
    length = len(text.encode())
    assert probe("small")(SMALL_STR, text, length) == text
    assert probe("small")(SMALL_BYTES, text, length) == text.encode()


def test_small_string_longer_than_its_room_is_refused(probe: Probe) -> None:
    """The length of a small string is not believed beyond seven."""
    with pytest.raises(ValueError, match=r"^small: result is a small string of more than 7 bytes$"):
        probe("small")(SMALL_STR, "abcdefgh", 8)


def test_object_result_is_released(probe: Probe) -> None:
    """A heap string is copied out; its only reference goes with one call of the deleter."""
    assert probe("object")(STR_OBJECT, "a longer text", 1, 1) == "a longer text"
    assert probe("deleter_flags")() == 3
    assert probe("object")(BYTES_OBJECT, "a longer text", 1, 1) == b"a longer text"
    assert probe("live_objects")() == 0


def test_object_result_with_weak_references(probe: Probe) -> None:
    """The last strong reference destroys, the weak ones keep the memory."""
    assert probe("object")(STR_OBJECT, "text", 1, 2) == "text"
    assert (probe("deleter_flags")(), probe("last_counts")()) == (1, 1 << 32)
    probe("free_last")()


def test_object_result_that_is_shared(probe: Probe) -> None:
    """Another strong reference keeps the object whole."""
    assert probe("object")(STR_OBJECT, "text", 2, 1) == "text"
    assert (probe("deleter_flags")(), probe("last_counts")()) == (0, 1 << 32 | 1)
    probe("free_last")()


def test_unsupported_result_is_released_and_named(probe: Probe) -> None:
    """A type that has no Python form is a TypeError, not a leak."""
    with pytest.raises(TypeError, match=r"^object: result of type index 72 is not supported$"):
        probe("object")(MAP_OBJECT, "", 1, 1)
    assert probe("live_objects")() == 0
    with pytest.raises(TypeError, match=r"^of_type: result of type index 4 is not supported$"):
        probe("of_type")(4)


def test_null_object_result_is_refused(probe: Probe) -> None:
    """An object type without an object is the function's mistake."""
    with pytest.raises(ValueError, match=r"^of_type: result is an object that is NULL$"):
        probe("of_type")(STR_OBJECT)


@pytest.mark.parametrize("name", ["not_utf8", "small_not_utf8"])
def test_result_that_is_not_utf8(probe: Probe, name: str) -> None:
    """A str result has to be text."""
    with pytest.raises(
        ValueError, match=rf"^{name}: result is a str of \d bytes that is not UTF-8$"
    ):
        probe(name)()
    assert probe("live_objects")() == 0


# ---- errors


@pytest.mark.parametrize(
    "kind", [ValueError, TypeError, KeyError, MemoryError, IndexError, OSError]
)
def test_raised_kind_is_the_builtin_class(probe: Probe, kind: type[Exception]) -> None:
    """The kind is the class, the message its only argument."""
    with pytest.raises(kind) as caught:
        probe("fail")(kind.__name__, "wrong: żółw")
    assert type(caught.value) is kind
    assert caught.value.args == ("wrong: żółw",)


@pytest.mark.parametrize(
    "kind", ["InternalError", "", "print", "SystemExit", "KeyboardInterrupt", "UnicodeDecodeError"]
)
def test_other_kind_is_a_runtime_error(probe: Probe, kind: str) -> None:
    """No name from C ends the interpreter or makes a class it cannot make."""
    with pytest.raises(RuntimeError) as caught:
        probe("fail")(kind, "text")
    assert caught.value.args == (f"{kind}: text",)


def test_long_and_null_texts(probe: Probe) -> None:
    """The slot holds any length, and NULL for either string."""
    with pytest.raises(ValueError, match=r"^x{100000}$"):
        probe("fail")("ValueError", "x" * 100000)
    with pytest.raises(RuntimeError) as caught:
        probe("fail_null")()
    assert caught.value.args == ("",)


def test_failure_without_an_error_says_so(probe: Probe) -> None:
    """-1 alone names the function; so does any other status."""
    with pytest.raises(RuntimeError, match=r"^fail_silently: returned -1 without raising$"):
        probe("fail_silently")()
    with pytest.raises(RuntimeError, match=r"^fail_with_7: returned 7 without raising$"):
        probe("fail_with_7")()


def test_stale_error_is_never_reported_for_another_call(probe: Probe) -> None:
    """What a call raised and then did not report is gone when the next one fails."""
    assert probe("raise_but_succeed")() is None
    with pytest.raises(RuntimeError, match="without raising"):
        probe("fail_silently")()
    with pytest.raises(KeyError, match="second"):
        probe("fail_twice")()
    with pytest.raises(RuntimeError, match="without raising"):
        probe("fail_silently")()


def test_each_thread_has_its_own_error(probe: Probe) -> None:
    """Errors raised in many threads at once do not mix."""
    found: dict[int, set[str]] = {}

    def run(number: int) -> None:
        seen = set()
        for _ in range(300):
            try:
                probe("fail")("ValueError", f"thread {number}")
            except ValueError as error:
                seen.add(str(error))
        found[number] = seen

    threads = [threading.Thread(target=run, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {number: {f"thread {number}"} for number in range(8)}


# ---- the GIL, and references


def _wait_beside_a_thread(probe: Probe, name: str, milliseconds: int) -> object:
    """Call a waiting function while another thread tries to answer it."""
    over = threading.Event()

    def answer() -> None:
        while not over.is_set() and not probe("is_waiting")():
            pass
        probe("set_flag")()

    thread = threading.Thread(target=answer)
    thread.start()
    result = probe(name)(milliseconds)
    over.set()
    thread.join()
    return result


def test_gil_is_released_during_a_call(probe: Probe) -> None:
    """Another Python thread answers while the function waits."""
    assert _wait_beside_a_thread(probe, "wait", 30000) is True


def test_gil_is_kept_when_the_facts_say_so(probe: Probe) -> None:
    """No other Python thread runs meanwhile, so nobody answers."""
    assert _wait_beside_a_thread(probe, "wait_keep", 50) is False


def test_calls_leave_no_reference(probe: Probe, library: Library) -> None:
    """Arguments, the function, the owner and the library have the counts they had."""
    objects = [np.ones(4, "f4"), "text" * 9, b"bytes" * 9, 10**15, 0.25, bytearray(9), object()]
    owner = object()
    function = library.function("count", owner)
    assert function is not None
    watched = [*objects, owner, function, library]
    before = [sys.getrefcount(each) for each in watched]
    for _ in range(50):
        function(*objects[:-1])
        function(*objects[:-1] * 4)
        with pytest.raises(TypeError):
            function(*objects)
    assert [sys.getrefcount(each) for each in watched] == before
