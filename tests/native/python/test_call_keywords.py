"""Declared functions are called as in Python: keywords, defaults, signature, help."""

from __future__ import annotations

import errno
import inspect
import pydoc
from typing import Any

import pytest

from runtime import DeviceModule, FunctionInfo

from .dlpack_producers import Probe

SOURCE = "declared.c"


@pytest.mark.parametrize(
    ("args", "keywords", "expected"),
    [
        ((1.0,), {}, 2.5),
        ((), {"x": 1.0}, 2.5),
        ((1.0, 3.0), {}, 3.5),
        ((1.0,), {"power": 3}, 6.5),
        ((1.0,), {"offset": 0.0}, 2.0),
        ((1.0,), {"offset": 0.0, "by": 3.0}, 3.0),
        ((1.0, 2.0, 3), {"offset": 0.0}, 6.0),
        ((), {"offset": 0.0, "power": 1, "by": 1.0, "x": 4.0}, 4.0),
    ],
)
def test_keywords_and_defaults(
    probe: Probe, args: tuple[Any, ...], keywords: dict[str, Any], expected: float
) -> None:
    """Keywords may be in any order; a gap gets its default."""
    assert probe("scale")(*args, **keywords) == expected


@pytest.mark.parametrize(
    ("args", "keywords", "expected"),
    [
        ((), {"by": 1}, "^scale: missing argument 'x'; declared as double scale"),
        ((1,), {"ofset": 1}, "^scale: unexpected keyword argument 'ofset'; near names: 'offset'$"),
        ((1,), {"x": 1}, "^scale: argument 'x' given twice$"),
        ((1, 2, 3, 4, 5), {"x": 1}, "^scale: expected 4 arguments, found 6$"),
        ((1,), {"\udc80": 1}, "unexpected keyword argument"),
        ((), {"x" + 1000 * "\0": 1}, "unexpected keyword argument"),
    ],
)
def test_wrong_keywords_are_refused(
    probe: Probe, args: tuple[Any, ...], keywords: dict[str, Any], expected: str
) -> None:
    """The messages equal a Python function's."""
    with pytest.raises(TypeError, match=expected):
        probe("scale")(*args, **keywords)


def test_parameter_with_the_name_of_a_python_keyword(probe: Probe) -> None:
    """It is `from_` for Python, as a field is; its own name is accepted too."""
    assert str(inspect.signature(probe("between"))) == "(from_: int, to: int) -> int"
    assert probe("between")(to=5, from_=3) == probe("between")(to=5, **{"from": 3}) == 2
    with pytest.raises(TypeError, match="unexpected keyword argument 'to_'; near names: 'to'"):
        probe("between")(3, to_=5)
    with pytest.raises(TypeError, match="argument 'from_' given twice"):
        probe("between")(3, from_=5)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "scale",
            "(x: float, by: float = 2.0, power: int = 1, offset: float = 0.5) -> float",
        ),
        ("num_open", "() -> int"),
        ("open_both", "(n: int) -> '(int, float, counter handle)'"),
        ("line_of", "(p: 'point struct') -> 'line struct'"),
        ("update", "(r: 'record struct') -> int"),
        ("count_texts", "(names: 'list of str', n: int) -> int"),
        ("fill", "(buf: 'buffer', n: int) -> None"),
        ("square", "(z: complex) -> complex"),
        ("call_with", "(c: 'counter handle', f: 'callable') -> int"),
    ],
)
def test_inspect_shows_the_signature(probe: Probe, name: str, expected: str) -> None:
    """Names, defaults and types come from the declaration."""
    assert str(inspect.signature(probe(name))) == expected


def test_parameters_of_a_kernel_are_positional_up_to_its_launch_tags() -> None:
    """A launch tag is not an identifier, so that the parameters before it have no names either."""
    launch = FunctionInfo("scale", ["handle", "int32"], ["blockIdx.x"])
    plain = FunctionInfo("fill", ["handle"])
    kernels = DeviceModule("opencl", "", "cl", [launch, plain])
    expected = "(arg0: 'array', arg1: int, blockIdx_x: int, /) -> None"
    assert str(inspect.signature(kernels["scale"])) == expected
    assert str(inspect.signature(kernels["fill"])) == "(arg0: 'array') -> None"


def test_function_without_parameters_in_its_metadata_has_no_signature(probe: Probe) -> None:
    """Inspect reports it as it does for builtins."""
    assert probe("any_pointer").__signature__ is None
    with pytest.raises(ValueError, match="not supported by signature"):
        inspect.signature(probe("any_pointer"))


def test_help_shows_declaration_and_doc(probe: Probe) -> None:
    """The doc of a function without one is its declaration."""
    text = pydoc.render_doc(probe("scale"), renderer=pydoc.plaintext)
    assert "double scale(double x, double by, int64_t power, double offset)" in text
    assert "Scale a number." in text
    assert probe("grow").__doc__ == "void grow(struct point *p)"
    assert "void grow(struct point *p)" in pydoc.render_doc(probe("grow"))


def test_os_error_has_its_errno(probe: Probe) -> None:
    """The number selects the class."""
    with pytest.raises(FileNotFoundError, match="No such file") as caught:
        probe("open_file")("[Errno 2] No such file or directory")
    assert (caught.value.errno, caught.value.strerror) == (
        errno.ENOENT,
        "No such file or directory",
    )
    with pytest.raises(OSError, match="^plain text$") as plain:
        probe("open_file")("plain text")
    assert plain.value.errno is None
    with pytest.raises(OSError, match=r"^\[Errno x\] text$"):
        probe("open_file")("[Errno x] text")
