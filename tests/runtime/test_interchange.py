"""Round trips of device trees: bytes, base64, JSON, pickle, copy."""

from __future__ import annotations

import base64

import pytest

import packer
import runtime

from ..support.process import run_python
from .interchanged import FORMS, device, each_form, host, shape

# base64 compiles host code; the others refuse it.
each_refusing_form = pytest.mark.parametrize(
    "form", [f for n, f in FORMS.items() if n != "base64"], ids=[n for n in FORMS if n != "base64"]
)


@each_form
def test_tree_of_device_modules_is_restored(form) -> None:
    """Code, kernels and imports, in separate modules; a module of two importers is one again."""
    bottom = device("bottom", type_key="opencl")
    module = device("top", device("left", bottom), device("right", bottom, device("d")))
    back = form(module)
    assert back is not module
    assert shape(back) == shape(module)
    left, right = back.imported_modules
    assert left.imported_modules[0] is right.imported_modules[0]


@each_form
def test_carried_source_stays_source(form) -> None:
    """Source from a blob has a binary form; nothing compiles it."""
    back = form(runtime.CarriedSourceModule("int f;", "c", ["f"]))
    assert (back.type_key, back.get_source(), back.func_names) == ("c", "int f;", ("f",))


@each_form
def test_one_bad_module_deep_in_a_tree_is_named(form) -> None:
    """The error has the module's place in the tree, in every form."""

    class Odd(runtime.Module):
        type_key = "test.odd"

    module = device("a", device("b"), device("c", device("d", Odd())))
    place = r"root.imported_modules\[1\].imported_modules\[0\].imported_modules\[0\]"
    with pytest.raises(runtime.ExportError, match=rf"^{place} \(<Odd 'test.odd'>\)") as info:
        form(module)
    assert info.value.module == "test.odd"


@each_refusing_form
def test_host_code_that_is_not_compiled_is_refused(form) -> None:
    """A C source module has no bytes; the message states the alternative."""
    with pytest.raises(runtime.ExportError, match=r"the root module \(<CSourceModule 'c'>\)") as e:
        form(host())
    assert "is host code" in str(e.value)
    assert "packer.export_library" in str(e.value)
    ir = packer.LLVMModule("define i64 @f() { ret i64 1 }")
    with pytest.raises(runtime.ExportError, match=r"root.imported_modules\[0\] \(<LLVMModule"):
        form(device("a", ir))


def test_base64_of_host_code_is_the_library(tmp_path) -> None:
    """Host code is exported, as TVM does it: the decoded text is the file."""
    text = runtime.export_module_to_base64(host(5))
    path = tmp_path / "decoded.so"
    path.write_bytes(base64.b64decode(text, validate=True))
    assert runtime.load(path)["answer"]() == 5
    assert runtime.import_module_from_base64(text)["answer"]() == 5


def test_base64_of_host_code_needs_packer() -> None:
    """Without packer the message states the fix."""
    code = """
import json, runtime
class Host(runtime.Module):
    property_mask = 4
try:
    runtime.export_module_to_base64(Host())
except runtime.PackerError as error:
    print(json.dumps(str(error)))
"""
    assert "pip install dso-packer" in run_python(code, blocked=("packer",))


def test_base64_of_a_loaded_library_is_its_file(build) -> None:
    """The text has no additions, so any tool can use it."""
    path = build(1)
    text = runtime.export_module_to_base64(runtime.load(path))
    assert base64.b64decode(text, validate=True) == path.read_bytes()


@pytest.mark.parametrize(
    "text", ["?", "QUJ", "QUJD\nREVG", "QUJDRA==QUJD", "ÄÖÜ=", "QUJD\ud800", b"\xff\xfe"]
)
def test_text_that_is_not_base64_is_refused(text) -> None:
    """A damaged text is refused as a whole."""
    with pytest.raises(runtime.BlobFormatError, match="^base64: .*expected base64 text"):
        runtime.import_module_from_base64(text)


def test_bytes_that_are_not_a_tree_are_refused() -> None:
    """The text may be well formed, but its contents not."""
    with pytest.raises(runtime.BlobFormatError, match="a blob of 3 bytes, expected at least 8"):
        runtime.import_module_from_base64("QUJD")
    with pytest.raises(runtime.LibraryLoadError, match="^<64 bytes>: "):
        runtime.import_module_from_base64(base64.b64encode(b"\x7fELF" + bytes(60)))
