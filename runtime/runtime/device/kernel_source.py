"""The kernels that device code declares: in PTX, OpenCL C and SPIR-V. Binaries are not read.

A kernel with a parameter of unknown type (a structure by value, local memory, a macro) is left out.
Each kernel takes all six launch integers, blocks before threads, x before y before z.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from struct import unpack_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeGuard

# The arguments of `FunctionInfo`: name, argument types, launch tags.
Kernel = tuple[str, tuple[str, ...], tuple[str, ...]]

# The text of a parameter, and its type; None if that is unknown.
Parameter = tuple[str, "str | None"]

TAGS = tuple(f"{index}.{axis}" for index in ("blockIdx", "threadIdx") for axis in "xyz")

# PTX ISA: fundamental types. Compilers write u64 for pointers, and u32 for every 32-bit integer.
_PTX_TYPES = {
    "u64": "handle",
    "b64": "handle",
    "s64": "int64",
    "u32": "int32",
    "b32": "int32",
    "s32": "int32",
    "u16": "uint16",
    "s16": "int16",
    "u8": "uint8",
    "s8": "int8",
    "f16": "float16",
    "f32": "float32",
    "f64": "float64",
}
# The patterns take linear time on any text: an unclosed comment extends to the end, and no search
# continues past the next match of the same kind.
_PTX_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)|//[^\n]*", re.DOTALL)
_PTX_ENTRY = re.compile(r"\.entry\s+([\w$%]+)\s*(?:\(([^()]*)\))?")
_PTX_PARAM = re.compile(r"\.param\s+(?:\.align\s+\d+\s+)?\.(\w+)\b[^,\[\]]*")

# OpenCL C: scalar types, and how many lanes a vector has.
_CL_TYPES = {
    "char": "int8",
    "uchar": "uint8",
    "short": "int16",
    "ushort": "uint16",
    "int": "int32",
    "uint": "uint32",
    "long": "int64",
    "ulong": "uint64",
    "unsigned": "uint32",
    "half": "float16",
    "float": "float32",
    "double": "float64",
    "unsigned char": "uint8",
    "unsigned short": "uint16",
    "unsigned int": "uint32",
    "unsigned long": "uint64",
}
_CL_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"?", re.DOTALL)
_CL_ATTRIBUTE = re.compile(r"__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)")
_CL_KERNEL = re.compile(r"\b(?:__)?kernel\s+void\s+(\w+)\s*\(([^()]*)\)")
_CL_VECTOR = re.compile(r"([a-z]+)(2|3|4|8|16)")
_CL_QUALIFIERS = {"const", "restrict", "volatile", "__private", "private"}
_CL_POINTERS = {"global", "__global", "constant", "__constant"}

# SPIR-V specification, section 3: opcodes, and the execution model of kernels.
_MAGIC = 0x07230203
_ENTRY_POINT, _INT, _FLOAT, _VECTOR, _POINTER = 15, 21, 22, 23, 32
_FUNCTION_TYPE, _FUNCTION = 33, 54
_SCALARS = {_INT: "int", _FLOAT: "float"}
_WIDTHS = (8, 16, 32, 64)
_OPERANDS = {
    _ENTRY_POINT: 3,
    _INT: 3,
    _FLOAT: 2,
    _VECTOR: 3,
    _POINTER: 3,
    _FUNCTION_TYPE: 2,
    _FUNCTION: 4,
}
_KERNEL = 6
# Section 2.17: a consumer must accept functions of up to that many parameters.
_MAX_PARAMETERS = 255


def kernels_of(fmt: str, data: memoryview) -> list[Kernel]:
    """Find the kernels of code in format ``"ptx"``, ``"cl"`` or ``"spirv"``; none in any other."""
    if fmt == "spirv":
        return [kernel for kernel, is_known in _spirv_kernels(data) if is_known]
    declared = ((name, [type_ for _, type_ in params]) for name, params in _declared(fmt, data))
    return [(name, tuple(types), TAGS) for name, types in declared if _all_known(types)]


def left_out(fmt: str, data: memoryview) -> dict[str, list[Parameter]]:
    """Find the kernels that `kernels_of` leaves out, each with its parameters."""
    if fmt == "spirv":
        return {
            k[0]: [("a parameter", None)] for k, is_known in _spirv_kernels(data) if not is_known
        }
    return {
        name: params
        for name, params in _declared(fmt, data)
        if not _all_known([type_ for _, type_ in params])
    }


def _all_known(types: list[str | None]) -> TypeGuard[list[str]]:
    return None not in types


def _declared(fmt: str, data: memoryview) -> Iterator[tuple[str, list[Parameter]]]:
    if fmt not in ("ptx", "cl"):
        return
    text = str(data, "utf-8", "replace")
    find, type_of = (_ptx_kernels, _ptx_type) if fmt == "ptx" else (_cl_kernels, _cl_type)
    for name, params in find(text):
        yield name, [(" ".join(param.split()), type_of(param)) for param in params]


def _ptx_kernels(text: str) -> Iterator[tuple[str, list[str]]]:
    for name, params in _PTX_ENTRY.findall(_PTX_COMMENT.sub(" ", text)):
        yield name, [param for param in params.split(",") if param.strip()]


def _ptx_type(param: str) -> str | None:
    match = _PTX_PARAM.fullmatch(param.strip())
    return _PTX_TYPES.get(match[1]) if match else None


def _cl_kernels(text: str) -> Iterator[tuple[str, list[str]]]:
    plain = _CL_ATTRIBUTE.sub(" ", _CL_COMMENT.sub(" ", text))
    for name, params in _CL_KERNEL.findall(plain):
        yield name, [p for p in params.split(",") if p.split() not in ([], ["void"])]


def _cl_type(param: str) -> str | None:
    words = param.replace("*", " * ").split()
    if "*" in words:
        return "handle" if _CL_POINTERS.intersection(words) else None
    name = " ".join(word for word in words[:-1] if word not in _CL_QUALIFIERS)
    vector = _CL_VECTOR.fullmatch(name)
    scalar = _CL_TYPES.get(vector[1] if vector else name)
    return f"{scalar}x{vector[2]}" if scalar and vector else scalar


def entry_model(data: memoryview) -> str:
    """Return ``"opencl"`` for SPIR-V with kernels, ``"vulkan"`` for SPIR-V with shaders only."""
    models = [words[1] for words in _instructions(data) if words[0] & 0xFFFF == _ENTRY_POINT]
    return "vulkan" if models and _KERNEL not in models else "opencl"


def _spirv_kernels(data: memoryview) -> Iterator[tuple[Kernel, bool]]:
    """Find entry points, each with False if a parameter has an unknown type.

    The entry points of one function share the tuple of its parameters.
    """
    types: dict[int, str] = {}
    parameters: dict[int, tuple[str, ...] | None] = {}
    entries: list[tuple[int, int, str]] = []
    function_types: dict[int, int] = {}
    for words in _instructions(data):
        opcode = words[0] & 0xFFFF
        if opcode == _ENTRY_POINT:
            entries.append((words[1], words[2], _literal(words[3:])))
        elif opcode in _SCALARS and words[2] in _WIDTHS:
            types[words[1]] = f"{_SCALARS[opcode]}{words[2]}"
        elif opcode == _VECTOR and words[2] in types and words[3] in (2, 3, 4, 8, 16):
            types[words[1]] = f"{types[words[2]]}x{words[3]}"
        elif opcode == _POINTER:
            types[words[1]] = "handle"
        elif opcode == _FUNCTION_TYPE:
            parameters[words[1]] = _spirv_parameters(words[3:], types)
        elif opcode == _FUNCTION:
            function_types[words[2]] = words[4]
    for model, function, name in entries:
        taken = parameters.get(function_types.get(function, 0))
        tags = TAGS if model == _KERNEL else ()
        yield (name, taken or (), tags), model != _KERNEL or taken is not None


def _spirv_parameters(words: tuple[int, ...], types: dict[int, str]) -> tuple[str, ...] | None:
    """The parameters of a function type, or None if the type of one is unknown."""
    if len(words) > _MAX_PARAMETERS or not types.keys() >= set(words):
        return None
    return tuple(types[word] for word in words)


def _instructions(data: memoryview) -> Iterator[tuple[int, ...]]:
    """Walk the instructions that are read here; end at one that is too short for its operands."""
    if len(data) < 20 or unpack_from("<I", data)[0] != _MAGIC:
        return
    offset = 20
    while offset + 4 <= len(data):
        (head,) = unpack_from("<I", data, offset)
        count = head >> 16
        if count < 1 + _OPERANDS.get(head & 0xFFFF, 0) or offset + 4 * count > len(data):
            return
        if head & 0xFFFF in _OPERANDS:
            yield unpack_from(f"<{count}I", data, offset)
        offset += 4 * count


def _literal(words: tuple[int, ...]) -> str:
    data = b"".join(word.to_bytes(4, "little") for word in words)
    return data.partition(b"\0")[0].decode("utf-8", "replace")
