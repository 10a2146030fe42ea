"""Triples: their meanings, and the refused targets, with the reason."""

from __future__ import annotations

import pytest

import packer
import runtime
from packer.target import find_target

READ = {
    "x86_64-linux-gnu": ("x86_64", "x86_64-linux-gnu", "x86_64-linux-gnu"),
    "x86_64-redhat-linux": ("x86_64", "x86_64-linux-gnu", "x86_64-linux-gnu"),
    "amd64-pc-linux-gnu": ("x86_64", "x86_64-linux-gnu", "x86_64-linux-gnu"),
    "x86_64-linux-gnu.2.17": ("x86_64", "x86_64-linux-gnu", "x86_64-linux-gnu.2.17"),
    "x86_64-alpine-linux-musl": ("x86_64", "x86_64-linux-musl", "x86_64-linux-musl"),
    "arm64-linux-gnu": ("aarch64", "aarch64-linux-gnu", "aarch64-linux-gnu"),
    "aarch64-unknown-linux-musl": ("aarch64", "aarch64-linux-musl", "aarch64-linux-musl"),
    "riscv64-unknown-linux-gnu": ("riscv64", "riscv64-linux-gnu", "riscv64-linux-gnu"),
}


@pytest.mark.parametrize(("triple", "expected"), READ.items())
def test_triple_is_read(triple, expected) -> None:
    """The machine, and how cross compilers and zig call it; LLVM's spelling has a vendor."""
    target = find_target(triple)
    assert (target.machine.name, target.gnu, target.zig) == expected
    assert target.llvm == target.gnu.replace("-", "-unknown-", 1)


def test_this_machine_is_the_default() -> None:
    """None is this machine; the empty text is not a target."""
    assert find_target(None).machine.name == "x86_64"
    with pytest.raises(packer.ExportError, match="unknown machine ''"):
        find_target("")


REFUSED = {
    "s390x-linux-gnu": "s390x is big-endian, expected little-endian",
    "powerpc64-linux-gnu": "powerpc64 is big-endian",
    "aarch64_be-linux-gnu": "aarch64_be is big-endian",
    "mips64-linux-gnuabi64": "mips64 is big-endian",
    "i686-linux-gnu": "i686 is a 32-bit machine, expected 64 bits",
    "armv7a-linux-gnueabihf": "armv7a is a 32-bit machine",
    "riscv32-linux-gnu": "riscv32 is a 32-bit machine",
    "x86_64-linux-gnux32": "gnux32 has 32-bit pointers",
    "aarch64-linux-gnu_ilp32": "gnu_ilp32 has 32-bit pointers",
    "riscv64-linux-gnusf": "gnusf is another floating-point ABI, expected the double-float ABI",
    "x86_64-w64-mingw32": "Windows uses PE files",
    "x86_64-pc-windows-msvc": "Windows uses PE files",
    "arm64-apple-darwin23.1.0": "macOS uses Mach-O files",
    "x86_64-unknown-freebsd14": "expected a Linux system",
    "loongarch64-linux-gnu": "unknown machine 'loongarch64'; known: x86_64, aarch64, riscv64",
    "x86_64-linux-musl.1.2": "version '1.2', expected a glibc version",
    "x86_64-linux-gnu.new": "version 'new', expected a glibc version",
}


@pytest.mark.parametrize(("triple", "reason"), REFUSED.items())
def test_target_is_refused_with_the_reason(triple, reason) -> None:
    """Big-endian, 32-bit, Windows, macOS, other floats, unknown machines and versions."""
    with pytest.raises(packer.ExportError, match=f"^target {triple!r}: {reason}"):
        find_target(triple)


@pytest.mark.parametrize("embed", ["segment", "llvm", "c"])
def test_compiler_for_a_refused_target_is_never_started(embed, tmp_path) -> None:
    """The target that an fcompile states is checked before any work."""

    def fcompile(output, files, options=None):
        raise AssertionError("the linker was reached")

    fcompile.get_target_triple = lambda: "x86_64-w64-mingw32"
    root = packer.CSourceModule("int f(void) { return 0; }", functions={"f": "int(void)"})
    root.import_module(runtime.DeviceModule("cuda", b"data", "ptx", []))
    with pytest.raises(packer.ExportError, match="'x86_64-w64-mingw32': Windows uses PE files"):
        packer.export_library(
            root, tmp_path / "lib.so", fcompile=fcompile, build=packer.Build(embed=embed)
        )
