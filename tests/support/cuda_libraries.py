"""Libraries with CUDA code, and the code."""

from __future__ import annotations


def cubin(capability: int, abi_version: int = 7) -> bytes:
    """The header of one."""
    head = bytearray(64)
    head[:9] = b"\x7fELF\2\1\1\x33" + bytes([abi_version])
    head[18:20] = (190).to_bytes(2, "little")
    flags = capability << 8 if abi_version >= 8 else capability
    head[48:52] = flags.to_bytes(4, "little")
    return bytes(head)


PTX = b"// nvcc\n.version 7.0\n.target sm_80, debug\n"
