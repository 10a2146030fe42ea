"""The GPU architectures that a module's code is for, and where that code runs."""

from __future__ import annotations

import struct

from packer.elf.architecture import Architecture, architectures_of

from ...support.cuda_libraries import PTX, cubin


def fatbin(*entries: tuple[int, int]) -> bytes:
    """PTX (1) and cubins (2), each of a capability."""
    body = b""
    for kind, capability in entries:
        image = cubin(capability) if kind == 2 else PTX.replace(b"80", b"%d" % capability)
        body += struct.pack("<HHIQ12xI32x", kind, 257, 64, len(image), capability) + image
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


def test_architectures_are_read_from_code() -> None:
    """PTX states it as text, a cubin in its flags, a fatbin for each part; others do not."""
    for data, expected in (
        (PTX, ["ptx sm_80"]),
        (b".target sm_90a\n", ["ptx sm_90a"]),
        (cubin(86), ["cubin sm_86"]),
        (cubin(103, 8), ["cubin sm_103"]),
        (fatbin((2, 80), (2, 90), (1, 90)), ["cubin sm_80", "cubin sm_90", "ptx sm_90"]),
        (fatbin((2, 80))[:40], []),
        (b"\x7fELF", []),
        (b"\x50\xed\x55\xba", []),
        (b"", []),
        (b"text", []),
    ):
        assert [str(one) for one in architectures_of(memoryview(data))] == expected


def test_architectures_run_where_nvidia_says() -> None:
    """PTX runs on later devices, a cubin in its generation, and a suffix restricts that."""
    runs = [
        (Architecture("ptx", 80), [80, 86, 90, 100, 103, 120]),
        (Architecture("cubin", 80), [80, 86]),
        (Architecture("ptx", 90, "a"), [90]),
        (Architecture("ptx", 100, "f"), [100, 103]),
    ]
    for architecture, expected in runs:
        tried = (75, 80, 86, 90, 100, 103, 120)
        assert [one for one in tried if architecture.runs_on(one)] == expected
