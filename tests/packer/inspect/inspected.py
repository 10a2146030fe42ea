"""Libraries that tests inspect, and the tools they compare with."""

from __future__ import annotations

import subprocess
from pathlib import Path

DATA = '__attribute__((visibility("default"), used)) const unsigned char'
SAFE_CALL = "int __tvm_ffi_{}(void *h, const void *a, int n, void *r) {{ return 0; }}\n"


def tool(*command: str | Path) -> list[str]:
    """The lines that a tool prints."""
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    return run.stdout.splitlines()


def with_blob(compile_library, folder: Path, blob: bytes, source: str = "", nbytes=None) -> Path:
    """A library without manifest whose blob symbol holds these bytes, after their header."""
    header = (len(blob) if nbytes is None else nbytes).to_bytes(8, "little")
    (folder / "blob.bin").write_bytes(header + blob)
    assembly = (
        ".section .rodata\\n.global __tvm_dev_mblob\\n.type __tvm_dev_mblob, @object\\n"
        f".size __tvm_dev_mblob, {len(blob) + 8}\\n"
        f'__tvm_dev_mblob: .incbin \\"{folder}/blob.bin\\"\\n.previous'
    )
    return compile_library(f'__asm__("{assembly}");\n{source}', "-nostdlib")


def entry(key: str, payload: bytes = b"") -> bytes:
    """The bytes of one blob entry."""
    return len(key).to_bytes(8, "little") + key.encode() + payload


def u64(*values: int) -> bytes:
    """Little-endian words."""
    return b"".join(value.to_bytes(8, "little") for value in values)


def library_bin(*modules: bytes, tree: bytes) -> str:
    """C source of a tvm-ffi library with these modules and one function."""
    body = tree + b"".join(modules)
    values = ", ".join(map(str, u64(len(body)) + body))
    return f"{DATA} __tvm_ffi__library_bin[] = {{{values}}};\n{SAFE_CALL.format('f')}"
