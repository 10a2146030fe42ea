"""The header's structs have the sizes and offsets of the specification."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from runtime.abi import CONTEXT_SYMBOLS

from ...support.compile import INCLUDE
from ...support.paths import DOCS, NATIVE

# struct, size, {field: offset}; formats: safe call, DLTensor (TVM FFI c_api.h, dlpack.h).
LAYOUTS = [
    ("dso_any", 16, {"type_index": 0, "small_len": 4, "v_int64": 8, "v_ptr": 8, "v_bytes": 8}),
    ("dso_object", 24, {"combined_ref_count": 0, "type_index": 8, "deleter": 16}),
    ("dso_byte_array", 16, {"data": 0, "size": 8}),
    ("DLDataType", 4, {"code": 0, "bits": 1, "lanes": 2}),
    ("DLDevice", 8, {"device_type": 0, "device_id": 4}),
    ("DLTensor", 48, {"data": 0, "device.device_type": 8, "device.device_id": 12, "ndim": 16,
                      "dtype": 20, "shape": 24, "strides": 32, "byte_offset": 40}),
    ("DLManagedTensor", 64, {"manager_ctx": 48, "deleter": 56}),
    ("DLManagedTensorVersioned", 80, {"minor": 4, "manager_ctx": 8, "deleter": 16, "flags": 24,
                                      "tensor": 32}),
]  # fmt: skip

FORMAT = DOCS / "format.md"
DLPACK = NATIVE / "abi" / "dlpack.h"


def _assertions(struct: str, size: int, offsets: dict[str, int]) -> str:
    lines = [f'_Static_assert(sizeof({struct}) == {size}, "{struct}");']
    for field, offset in offsets.items():
        lines.append(f'_Static_assert(offsetof({struct}, {field}) == {offset}, "{field}");')
    return "\n".join(lines)


@pytest.mark.parametrize(("struct", "size", "offsets"), LAYOUTS, ids=lambda value: str(value)[:24])
def test_layout(struct: str, size: int, offsets: dict[str, int], tmp_path: Path) -> None:
    """The compiler agrees with every number."""
    source = tmp_path / "layout.c"
    header = "dso_packer.h" if not struct.startswith("DLManaged") else str(DLPACK)
    source.write_text(
        f'#include <stddef.h>\n#include "{header}"\n{_assertions(struct, size, offsets)}\n'
    )
    command = ["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-I{INCLUDE}"]
    subprocess.run([*command, str(source)], check=True)


@pytest.mark.parametrize(("compiler", "standard"), [("cc", "c99"), ("c++", "c++11")])
def test_header_compiles_without_a_warning(compiler: str, standard: str, tmp_path: Path) -> None:
    """User code may be old C or C++ and strict."""
    source = tmp_path / ("user.c" if compiler == "cc" else "user.cc")
    source.write_text('#include "dso_packer.h"\nint f(void) { return dso_raise("E", "m"); }\n')
    command = [compiler, f"-std={standard}", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"]
    subprocess.run([*command, f"-I{INCLUDE}", str(source)], check=True)


def test_header_names_the_version_of_the_abi(tmp_path: Path) -> None:
    """Code for several versions can compare it in the preprocessor."""
    source = tmp_path / "user.c"
    source.write_text('#include "dso_abi.h"\n#if DSO_ABI_VERSION != 1\n#error version\n#endif\n')
    subprocess.run(["cc", "-fsyntax-only", f"-I{INCLUDE}", str(source)], check=True)


def test_context_symbols_are_those_that_the_core_fills() -> None:
    """One list: in abi.py, in the core's table, and in docs/format.md."""
    table = (NATIVE / "library" / "provided.c").read_text()
    rows = re.findall(r"^    ROW\((\w+)\)", table, re.MULTILINE)
    without = re.compile(r".*RegisterSystemLibSymbol|TVMFFIEnv[GS]etStream")  # code calls them
    provided = {f"__{name}" for name in rows if not without.fullmatch(name)}
    assert set(CONTEXT_SYMBOLS) == provided | {"__tvm_module_ctx", "__tvm_ffi__library_ctx"}
    lines = [line for line in FORMAT.read_text().splitlines() if "| context: " in line]
    assert set(re.findall(r"`(\w+)`", "".join(line.split("|")[1] for line in lines))) == set(
        CONTEXT_SYMBOLS
    )
