"""The constructor of libraries with CPU levels, in the notation of `forms`.

`packer/templates/level_x86_64.s` and `level_aarch64.s` contain the same code as instructions. It
prints only the text below, calls functions of the C library through pointers beside it, and stores
addresses in the slots of the library's functions. The distances of the pointers and of the slots
follow the text.
"""

from __future__ import annotations

from .encodings import Encoding, signed

_TEXT = (
    b"DSO_CPU\0"
    b"DSO_CPU: level %.40s is not in a library, or not of this processor; %.16s is used\n\0"
    b"DSO_CPU: this processor has less than %.16s, the lowest level of a library; "
    b"its code may end the process\n\0"
)
_COUNTS = "{count num_slots} {count num_levels}"
_CALLS = "{distance got getenv} {distance got dprintf} {distance slots}"

_X86_64 = (
    "f30f1efa 53 55 4154 4155 4883ec28 4c8d254f020000 31f6 4889742408 4889742410 4889742418 "
    "b801000000 0fa2 890c24 89cd b801000080 0fa2 894c2404 0fbae51a 7329 b807000000 31c9 0fa2 "
    "895c2408 894c240c 89542410 85c0 7410 b807000000 b901000000 0fa2 89442414 0fbae51b 7309 "
    "31c9 0f01d0 89442418 48f71424 48f7542408 48f7542410 48f7542418 488d3d0a010000 498b0424 "
    "41ff1404 4889c5 41bdffffffff 488d1dd7010000 31d2 488b4310 48230424 488b4b18 48234c2408 "
    "4809c8 488b4b20 48234c2410 4809c8 488b4b28 48234c2418 4809c8 751b 4189d5 4885ed 7413 "
    "31f6 8a443500 3a0433 7508 ffc6 84c0 75f1 eb59 4883c330 ffc2 413b54241c 72aa 4585ed 7825 "
    "4885ed 7442 807d0000 743c 416bcd30 488d0564010000 4801c1 4889ea 488d357a000000 eb11 "
    "4531ed 488d154b010000 488d35ba000000 bf02000000 4d8b5c2408 31c0 43ff541c08 416b44241c30 "
    "488d3d26010000 4801c7 418b4c2418 4489e8 480fafc1 488d3487 498b542410 498d541410 85c9 "
    "7415 486306 4801f8 488902 4883c604 4883c208 ffc9 ebe7 4883c428 415d 415c 5d 5b c3"
)
_AARCH64 = (
    "d503245f a9bc7bfd 910003fd a90153f3 a9025bf5 a90363f7 10000fd3 f9400268 f8686a68 "
    "d2800200 d63f0100 aa2003f4 f9400268 f8686a68 d2800340 d63f0100 aa2003f5 10000820 "
    "f8408e68 f8686a68 d63f0100 aa0003f6 12800018 10000ef7 52800009 b9401e6a a94132eb "
    "8a14016b 8a15018c aa0c016b b500016b 2a0903f8 b4000136 d280000d 386d6acb 386d6aec "
    "6b0c017f 54000081 910005ad 35ffff6b 14000016 910082f7 11000529 6b0a013f 54fffdc3 "
    "10000c37 37f80118 b40001f6 394002cb 340001ab 10000441 aa1603e2 8b1816e3 14000004 "
    "52800018 70000621 aa1703e2 52800040 91002269 f9400128 f8686928 d63f0100 b9401e6a "
    "100009ec 8b0a158c b9401a69 9b097f0b 8b0b098b 9100426d f94001ae 8b0e01ad 340000c9 "
    "b880456e 8b0c01ce f80085ae 51000529 17fffffb a94363f7 a9425bf5 a94153f3 a8c47bfd "
    "d65f03c0"
)


def _words(data: bytes) -> str:
    """Return data as the words of a machine whose forms are words, padded to 8 bytes."""
    padded = data + bytes(-len(data) % 8)
    return " ".join(padded[at : at + 4][::-1].hex() for at in range(0, len(padded), 4))


# The tables follow: for each level 48 or 32 bytes, and 4 for each function.
LEVELS_X86_64 = f"{_X86_64} {_TEXT.hex()} {_CALLS} {_COUNTS} {{here tables 48}}"
LEVELS_AARCH64 = (
    f"{_AARCH64} {_words(_TEXT)} {{distance got getauxval}} {_CALLS} {_COUNTS} {{here tables 32}}"
)

ENCODINGS = {
    "distance": (Encoding(8, 0, 0, lambda place, code, _: place + signed(code, 0, 64)),),
    "count": (Encoding(4, 0, 0, lambda _, code, __: code),),
    "here": (Encoding(0, 0, 0, lambda place, _, __: place),),
}
