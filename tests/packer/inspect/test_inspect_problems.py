"""inspect_library: malformed blobs, metadata and manifests are problems that hide nothing else."""

from __future__ import annotations

import json
import re

import pytest

import runtime
from packer.inspect import inspect_library, render
from runtime.error import PackerError

from ...support.elf_poke import Elf, Record
from .inspected import DATA, SAFE_CALL, entry, u64, with_blob


def test_malformed_blob_is_a_problem_that_hides_nothing_else(
    malformed_case, compile_library, tmp_path
) -> None:
    """Rows A and B: the text states the problem; symbols and functions are as in any library."""
    _, case, blob = malformed_case
    path = with_blob(
        compile_library, tmp_path, blob, SAFE_CALL.format("f"), nbytes=case.get("header_nbytes")
    )
    report = inspect_library(path)
    json.dumps(report.to_dict(), allow_nan=False).encode()
    assert [f.name for f in report.functions] == ["f"]
    assert report.blob.offset is not None
    if report.blob.error is not None:
        assert report.blob.error in report.problems
        assert "problem: " in render(report)
    if case.get("mode") == "library":
        try:
            runtime.load(path)
        except PackerError:
            assert report.blob.error is not None
        else:
            assert report.blob.error is None


@pytest.mark.parametrize(
    ("source", "match"),
    [
        (f"{DATA} __tvm_dev_mblob[4] = {{1}};", "a symbol of 4 bytes"),
        (f"{DATA} __tvm_dev_mblob[8] = {{0}};", "a blob of 0 bytes"),
        (f"{DATA} __tvm_dev_mblob[16] = {{9}};", "nbytes is 9, expected 8"),
        ("void __tvm_dev_mblob(void) {}", "is a function, expected data"),
        ("char __tvm_dev_mblob[64];", "is not stored in the file"),
        ("char __tvm_dev_mblob[64] = {56};", "in a writable segment"),
        ('__asm__(".globl __tvm_dev_mblob\\n.data\\n__tvm_dev_mblob: .quad 1");', "has size 0"),
        (
            f"{DATA} __tvm_dev_mblob[16] = {{8}}; {DATA} __tvm_ffi__library_bin[16] = {{8}};",
            "both __tvm_dev_mblob and __tvm_ffi__library_bin",
        ),
    ],
)
def test_blob_symbol_that_a_load_refuses_is_a_problem(source, match, compile_library) -> None:
    """The message is the loader's."""
    path = compile_library(source)
    with pytest.raises(PackerError, match=re.escape(match)):
        runtime.load(path)
    assert any(match in problem for problem in inspect_library(path).problems)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("packer-function 2\\n", "first line 'packer-function 2', expected 'packer-function 1'"),
        ("packer-function 1\\nabi odd\\n", "abi 'odd', expected safe_call or packed_c"),
        ("packer-function 1\\ngil odd\\n", "gil 'odd', expected release or keep"),
        ("packer-function 1\\nparams x\\n", "params 'x', expected name:code"),
        ("packer-function 1\\n\\xff\\n", "codec can't decode"),
        ("packer-function 1\\n\\0more", "expected text that ends with its only NUL"),
    ],
)
def test_malformed_metadata_is_a_problem_and_the_function_stays(
    text, match, compile_library
) -> None:
    """The error has the symbol and the expected value."""
    source = f'{SAFE_CALL.format("f")} const char __packer_fn_f[] = "{text}";'
    report = inspect_library(compile_library(source))
    (problem,) = report.problems
    assert problem.startswith("__packer_fn_f at 0x")
    assert match in problem
    assert [(f.name, f.signature) for f in report.functions] == [("f", None)]


def test_unknown_metadata_is_skipped_and_packed_functions_listed(compile_library) -> None:
    """A newer packer may add lines; a packed C function is known only by its metadata."""
    facts = "packer-function 1\\nabi packed_c\\nnews x\\ngil keep\\ndoc A\\ndoc B\\n"
    report = inspect_library(
        compile_library(f'int f(void) {{ return 0; }} const char __packer_fn_f[] = "{facts}";')
    )
    (function,) = report.functions
    assert (function.symbol, function.abi, function.gil) == ("f", "packed_c", "keep")
    assert function.doc == "A\ndoc B"
    assert function.signature is None


def test_malformed_manifest_and_entry_name_are_problems(compile_library, tmp_path) -> None:
    """Both problems are named; the tree is still read."""
    blob = u64(2) + entry("_lib") + entry("_import_tree", u64(2, 0, 0, 0))
    source = 'const char __packer_manifest[] = "{"; const char __tvm_main__[] = "\\xff";'
    report = inspect_library(with_blob(compile_library, tmp_path, blob, source))
    assert [m.type_key for m in report.modules] == ["library"]
    first, second = sorted(report.problems)
    assert first.startswith("__packer_manifest at 0x0: ")
    assert second == "__tvm_main__ contains b'\\xff', expected a function's name"
    assert report.entry is None


def test_compressed_section_is_never_decompressed(compile_library, tmp_path) -> None:
    """Not on its word; the dynamic symbols are still shown."""
    elf = Elf(compile_library("int f(void) { return 1; }").read_bytes())
    start, count = (elf.peek(elf.header, name) for name in ("e_shoff", "e_shnum"))
    headers = [Record("section", start + 64 * i) for i in range(count)]
    table = next(r for r in headers if elf.peek(r, "sh_type") == 2)
    elf.poke(table, "sh_flags", 0x800)
    (tmp_path / "bomb.so").write_bytes(elf.data)
    report = inspect_library(tmp_path / "bomb.so")
    assert any("expected an uncompressed one" in problem for problem in report.problems)
    assert "f" in [s.name for s in report.symbols.dynamic]
    assert len(report.symbols.static) == 0


def test_blob_that_a_look_up_by_hash_would_not_find_is_a_problem(compile_library, tmp_path) -> None:
    """Two symbols of the name; the report shows one, the loader takes the other."""
    decoy = "const char decoy_dev_mblob[16] = {8};"
    elf = Elf(compile_library(f"{DATA} __tvm_dev_mblob[16] = {{8}}; {decoy}").read_bytes())
    name = elf.peek(elf.symbol("__tvm_dev_mblob"), "st_name")
    elf.poke(elf.symbol("decoy_dev_mblob"), "st_name", name)
    (tmp_path / "two.so").write_bytes(elf.data)
    assert inspect_library(tmp_path / "two.so").problems
