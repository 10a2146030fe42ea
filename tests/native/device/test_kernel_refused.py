"""Kernels of device modules: look-up, signatures, and refusals before the driver is called."""

from __future__ import annotations

import re

import pytest

import runtime
from runtime import DeviceError, DeviceModule, FunctionInfo

from ...support import needs
from ...support.process import run_python

TAGS = ("blockIdx.x", "threadIdx.x")
SCALE = FunctionInfo("scale", ("handle", "float32", "int32"), TAGS)
# The values that a scalar argument of each type refuses, the error and its text.
REFUSED = [
    ("int8", 128, OverflowError, "out of range, expected int8, found 128"),
    ("int8", -129, OverflowError, "expected int8, found -129"),
    ("uint16", -1, OverflowError, "expected uint16, found -1"),
    ("int32", 2**31, OverflowError, "expected int32, found 2147483648"),
    ("uint32", 2**32, OverflowError, "expected uint32, found 4294967296"),
    ("uint64", -1, OverflowError, "expected uint64, found -1"),
    ("int64", 2**63, OverflowError, "expected an int64, found 9223372036854775808"),
    ("bool", 2, OverflowError, "expected bool, found 2"),
    ("float16", 65520.0, OverflowError, "expected float16, found 65520"),
    ("float32", 1e300, OverflowError, r"expected float32, found 1e\+300"),
    ("int32", 1.5, TypeError, "expected int32, found a float"),
    ("float32", "1", TypeError, "expected float32, found a str"),
    ("float32", None, TypeError, "expected float32, found None"),
    ("float32x4", 1.0, TypeError, "expected float32x4 as an array of 4 elements on the CPU"),
    ("handle", 1, TypeError, "expected a tensor on opencl, found an int"),
]


def module(*infos: FunctionInfo, code: str = "") -> DeviceModule:
    """An OpenCL module whose code no test of this file builds."""
    return DeviceModule("opencl", code, "cl", infos)


def test_lookup_shows_arguments_and_launch_tags() -> None:
    """A kernel's signature shows its arguments, and the integers of its launch."""
    function = module(SCALE)["scale"]
    signature = "void scale(handle arg0, float32 arg1, int32 arg2, blockIdx.x, threadIdx.x)"
    assert (function.name, function.signature) == ("scale", signature)
    assert function.__doc__ == (
        "A kernel. Its launch takes one integer per tag after the arguments: "
        "blockIdx.x, threadIdx.x."
    )


def test_lookup_is_by_key_and_finds_no_other() -> None:
    """A kernel is found by its key in the module, not by its name in the code."""
    kernels = DeviceModule("opencl", "", "cl", {"alias": SCALE})
    assert kernels["alias"].name == "alias"
    with pytest.raises(runtime.FunctionNotFoundError, match="near names: 'alias'"):
        kernels["alia"]


def test_one_word_is_not_a_list_of_types_or_tags() -> None:
    """A string would be taken letter by letter."""
    with pytest.raises(TypeError, match=r"arg_types: .* found 'handle'; write \['handle'\]"):
        FunctionInfo("f", "handle")
    with pytest.raises(TypeError, match="launch_param_tags: expected a list of str"):
        FunctionInfo("f", ["handle"], "blockIdx.x")


@pytest.mark.parametrize("functions", [["scale"], {"scale": "scale"}, "scale"])
def test_name_alone_is_not_a_kernel(functions) -> None:
    """A kernel without its types and tags is refused when the module is made."""
    with pytest.raises(TypeError, match=r"functions: expected runtime\.FunctionInfo, found '"):
        DeviceModule("opencl", "", "cl", functions)


def test_unknown_launch_tag_is_refused_at_lookup() -> None:
    """A tag that means nothing here is named, with its kernel."""
    info = FunctionInfo("scale", ("handle",), ("blockIdx.x", "clusterIdx.w"))
    with pytest.raises(DeviceError, match=r"scale: launch tag 'clusterIdx\.w' is unknown"):
        module(info)["scale"]


def test_repeated_launch_tag_is_refused_at_lookup() -> None:
    """Each extent is given once."""
    with pytest.raises(DeviceError, match=r"launch tag 'threadIdx\.y' occurs twice, expected once"):
        module(FunctionInfo("f", (), ("threadIdx.y", "threadIdx.y")))["f"]


@pytest.mark.parametrize("text", ["bfloat16", "float32x5", "complex64", "int4", "custom[99]32"])
def test_type_no_kernel_takes_is_refused_at_lookup(text: str) -> None:
    """An argument type that no kernel has is refused with its number."""
    with pytest.raises(
        DeviceError, match="f: argument 2: unsupported type code .*; expected a handle"
    ):
        module(FunctionInfo("f", ("int32", text), ()))["f"]


@pytest.mark.parametrize("name", ["a\0b", "\ud800"])
def test_name_no_driver_can_take_is_refused(name: str) -> None:
    """A name that is not a C string is refused, not cut."""
    with pytest.raises(DeviceError, match="expected names of plain text"):
        module(FunctionInfo(name, (), ()))[name]


@pytest.mark.parametrize(("text", "value", "error", "message"), REFUSED)
def test_scalar_is_checked(text: str, value: object, error: type[Exception], message: str) -> None:
    """An argument that its type does not hold is refused before any driver is asked."""
    function = module(FunctionInfo("f", (text,), TAGS))["f"]
    with pytest.raises(error, match=f"^f: argument 1.*{message}"):
        function(value, 1, 1)


@pytest.mark.parametrize("count", [0, 4, 6])
def test_argument_count_is_checked(count: int) -> None:
    """Too few and too many arguments are refused; the message counts both kinds."""
    text = rf"expected 5 arguments \(3 of the kernel and 2 for the launch\), found {count}"
    with pytest.raises(TypeError, match=text):
        module(SCALE)["scale"](*[1] * count)


@pytest.mark.parametrize(
    ("extent", "error", "message"),
    [
        (-1, ValueError, "expected 0 to 2147483647 for the launch, found -1"),
        (2**31, ValueError, "expected 0 to 2147483647 for the launch, found 2147483648"),
        (1.0, TypeError, "expected an int for the launch, found a float"),
        (None, TypeError, "expected an int for the launch, found None"),
    ],
)
def test_extent_is_checked(extent: object, error: type[Exception], message: str) -> None:
    """Extents from 2^31 on, and values that are not integers, are refused."""
    with pytest.raises(error, match=f"^scale: argument 5: {message}"):
        module(SCALE)["scale"](None, 1.0, 1, 1, extent)


def test_array_of_the_host_is_refused() -> None:
    """A kernel refuses an array on the CPU; the message states the fix."""
    text = "expected a tensor on opencl, found one on cpu:0; copy it there with runtime.tensor("
    with pytest.raises(ValueError, match=re.escape(text)):
        module(SCALE)["scale"](bytearray(8), 1.0, 1, 1, 1)


def test_note_of_written_parameters_takes_no_integer() -> None:
    """WebGPU's note among the tags adds no integer after the arguments."""
    info = FunctionInfo("f", (), ("paramWriteAccess:[1]", "blockIdx.x"))
    function = module(info)["f"]
    assert function.signature == "void f(blockIdx.x)"
    with pytest.raises(TypeError, match="expected 1 arguments"):
        function(1, 1)


def test_module_without_binding_is_carried() -> None:
    """A module whose devices the runtime cannot drive is carried; a launch reports that."""
    hip = DeviceModule("hip", "", "hip", [SCALE])
    assert hip.property_mask == runtime.ModuleProperty.BINARY_SERIALIZABLE
    with pytest.raises(runtime.FunctionNotFoundError, match="carries it, but cannot run here"):
        hip["scale"]


def test_load_and_lookup_open_no_driver() -> None:
    """A driver is opened by the first launch or question about it, not by a load or a look-up."""
    needs.opencl_library()
    data = runtime.serialize_module_to_bytes(module(SCALE))
    code = """
import json, pathlib, sys, runtime
is_open = lambda: "libOpenCL" in pathlib.Path("/proc/self/maps").read_text()
module = runtime.deserialize_module_from_bytes(bytes.fromhex(sys.argv[1]))
function = module["scale"]
before = is_open()
print(json.dumps([before, module.property_mask, is_open()]))
"""
    assert run_python(code, data.hex()) == [False, 3, True]
