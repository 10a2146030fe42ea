"""Host code that looks up and calls functions of its library's imports."""

from __future__ import annotations

import weakref
from typing import Any

import pytest

import runtime

from ...support.importing import Functions, importing


def test_host_code_calls_a_function_of_an_import(host) -> None:
    """Arguments reach the import, and its result returns."""
    importing(host, scale=lambda x, factor: x * factor)
    assert host["call"]("scale", 21, 2) == 42


def test_imports_are_searched_depth_first_in_import_order(host) -> None:
    """The imports of the first import precede the second import."""
    first, second = Functions(), Functions(f=lambda: "second")
    first.import_module(Functions(f=lambda: "below first"))
    host.import_module(first)
    host.import_module(second)
    assert host["call"]("f") == "below first"


def test_library_itself_is_not_searched(host) -> None:
    """Host code calls its library's functions in C, not by name."""
    with pytest.raises(runtime.FunctionNotFoundError):
        host["call"]("add", 1, 2)


def test_global_functions_are_last(host, register_func) -> None:
    """A global function serves only a name that no import has."""
    register_func("test.context.f", lambda: "global")
    assert host["call"]("test.context.f") == "global"
    importing(host, **{"test.context.f": lambda: "import"})
    assert host["call"]("test.context.f") == "import"


def test_unknown_name_is_refused_with_near_ones(host) -> None:
    """The error names the function, the library and similar names."""
    importing(host, scale=abs)
    with pytest.raises(runtime.FunctionNotFoundError) as caught:
        host["call"]("scaled")
    assert "calls 'scaled', which is neither a function of its imports" in str(caught.value)
    assert "host.so" in str(caught.value) and "near names: 'scale'" in str(caught.value)
    assert caught.value.name == "scaled"


def test_name_that_is_not_utf8_is_an_error(host) -> None:
    """Such a name does not crash, and names no function; it is shown escaped."""
    with pytest.raises(runtime.FunctionNotFoundError, match=r"calls '\\udcff'"):
        host["call_bad_name"]()


def test_null_name_and_null_function_are_errors(host) -> None:
    """NULL in place of a name or a function is reported, not followed."""
    with pytest.raises(TypeError, match="look-up: expected a name, found NULL"):
        host["find_null"]()
    with pytest.raises(TypeError, match="call: expected a function, found NULL"):
        host["call_null"]()


def test_call_without_arguments_and_none_as_result(host) -> None:
    """The macro accepts a call without arguments, too."""
    importing(host, none=lambda *args: args or None)
    assert host["call_none"]() is None


def test_each_kind_of_argument_arrives(host) -> None:
    """Python sees the C values that dso_packer.h makes."""
    seen: list[Any] = []

    def look(*args: Any) -> None:
        seen.extend([*args[:-1], bytes(memoryview(args[-1]).cast("B"))])

    importing(host, all=look)
    host["call_all"]()
    assert seen == [None, -5, True, 0.5, "text", runtime.Device("cpu:2"), b"abc"]


def test_unused_result_is_released(host) -> None:
    """A long string and a callable are objects: dropping them leaves nothing."""

    class Result:
        def __call__(self) -> None: ...

    gone: list[weakref.ref[Result]] = []

    def drop(_number: int) -> Result:
        result = Result()
        gone.append(weakref.ref(result))
        return result

    importing(host, drop=drop)
    host["call_and_drop"]()
    assert gone[0]() is None


def test_exception_of_an_import_passes_through_host_code_as_itself(host) -> None:
    """The same object arrives, with the traceback of its origin."""
    error = KeyError("mine")

    def fail() -> None:
        raise error

    importing(host, fail=fail)
    with pytest.raises(KeyError) as caught:
        host["call"]("fail")
    assert caught.value is error
