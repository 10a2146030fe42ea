"""DLDataType as text: ``"float32"``, ``"int8x4"``, ``"handle"``, and back.

On the wire and in DLPack a data type is (u8 code, u8 bits, u16 lanes).
"""

from __future__ import annotations

DTypeCode = tuple[int, int, int]

# DLDataTypeCode (dlpack.h); code 3 is TVM's handle, DLPack's opaque handle.
CODE_NAMES = {
    0: "int",
    1: "uint",
    2: "float",
    3: "handle",
    4: "bfloat",
    5: "complex",
    7: "float8_e3m4",
    8: "float8_e4m3",
    9: "float8_e4m3b11fnuz",
    10: "float8_e4m3fn",
    11: "float8_e4m3fnuz",
    12: "float8_e5m2",
    13: "float8_e5m2fnuz",
    14: "float8_e8m0fnu",
    15: "float6_e2m3fn",
    16: "float6_e3m2fn",
    17: "float4_e2m1fn",
}
_FIXED_BITS = {**dict.fromkeys(range(7, 15), 8), 15: 6, 16: 6, 17: 4}
_CODES = {name: code for code, name in CODE_NAMES.items()}
_WHOLE = {"handle": (3, 64, 1), "bool": (6, 8, 1), "void": (3, 0, 0)}
_WHOLE_NAMES = {code: name for name, code in _WHOLE.items()}
_DIGITS = "0123456789"


def dtype_to_string(dtype: DTypeCode) -> str:
    """Name a data type (code, bits, lanes): ``"float32"``, ``"uint1"``, ``"float32x4"``.

    A code without a name becomes ``"custom[99]32"``. Names are unique.
    """
    if dtype in _WHOLE_NAMES:
        return _WHOLE_NAMES[dtype]
    code, bits, lanes = dtype
    suffix = "" if lanes == 1 else f"x{lanes}"
    if code == 6 and bits == 8:
        return f"bool{suffix}"
    if _FIXED_BITS.get(code) == bits:
        return f"{CODE_NAMES[code]}{suffix}"
    if code in _FIXED_BITS or code not in CODE_NAMES:
        return f"custom[{code}]{bits}{suffix}"
    return f"{CODE_NAMES[code]}{bits}{suffix}"


def string_to_dtype(text: str) -> DTypeCode:
    """Read the name of a data type, and return (code, bits, lanes); ValueError for another text."""
    if text in _WHOLE:
        return _WHOLE[text]
    stem, lanes = _split_lanes(text)
    if stem == "bool":
        return _checked(text, 6, 8, lanes)
    code = _CODES.get(stem)
    if code in _FIXED_BITS:
        return _checked(text, code, _FIXED_BITS[code], lanes)
    name = stem.rstrip(_DIGITS)
    bits = stem[len(name) :]
    if name.startswith("custom[") and name.endswith("]") and name[7:-1].isdecimal() and bits:
        return _checked(text, int(name[7:-1]), int(bits), lanes)
    if name in _CODES and _CODES[name] not in _FIXED_BITS and bits:
        return _checked(text, _CODES[name], int(bits), lanes)
    raise ValueError(f"{text!r} names no data type; write one like 'float32' or 'int8x4'")


def _split_lanes(text: str) -> tuple[str, int]:
    stem, cross, lanes = text.rpartition("x")
    # Not the x of "complex64": the text before the lanes ends in bits, or is a whole name.
    ends = stem[-1:] in (*_DIGITS, "]") or stem == "bool" or stem in _CODES
    return (stem, int(lanes)) if cross and ends and lanes.isdecimal() else (text, 1)


def _checked(text: str, code: int, bits: int, lanes: int) -> DTypeCode:
    if code > 0xFF or bits > 0xFF or lanes > 0xFFFF:
        raise ValueError(
            f"{text!r} is out of the range of DLDataType (u8 code, u8 bits, u16 lanes)"
        )
    return code, bits, lanes
