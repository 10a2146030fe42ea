"""Constants of bytecode as weights beside it, where they are aligned and used in place.

A constant within a payload begins anywhere, so a machine copies it. As a tensor of a safetensors
module it begins at a multiple of 64 bytes; the code gets it by ``dso.weight``.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator, Sequence
from struct import Struct
from typing import TYPE_CHECKING

from runtime.module import Module, preorder
from runtime.modules import vm
from runtime.modules.opaque import OpaqueModule
from runtime.modules.safetensors import SafetensorsModule
from runtime.modules.vm import VMExecutable, VMFunction
from runtime.registry import find_loader
from runtime.serial.stream import Reader
from runtime.tensors.safetensors_file import DTYPES

from .assembler import little

if TYPE_CHECKING:
    from runtime.tensors.tensor import Tensor

_ALIGNMENT = 64
_LEAST_NBYTES = 4096  # smaller ones are not worth a call
_NAMES = {code: name for name, code in DTYPES.items()}
_WEIGHT = "dso.weight"
_KEYS = (VMExecutable.type_key, vm.LEGACY_KEY)
_CALL, _CONSTANT, _ANY_ARGS = 1, 2, -2


def align_constants(root: Module) -> int:
    """Move the large constants of the bytecode in a tree to safetensors modules, in place.

    The executables get further imports, and other instructions and constants. Return the number of
    bytes that were moved. TVM does not read the result: it has neither safetensors modules nor
    ``dso.weight``.
    """
    moved = 0
    for module in list(preorder(root)):
        if isinstance(module, VMExecutable):
            moved += _align(module)
    return moved


def parsed(root: Module) -> Module:
    """Return an executable for a root that is one in bytes, as `packer extract` leaves it."""
    if not isinstance(root, OpaqueModule) or root.type_key not in _KEYS:
        return root
    payload = root.payload
    executable = find_loader(root.type_key)(Reader(payload, where=root.type_key))
    for imported in root.imported_modules:
        executable.import_module(imported)
    return executable


def _align(executable: VMExecutable) -> int:
    tensors = {
        index: value
        for index, (type_index, value) in enumerate(executable.values)
        if type_index == vm.TENSOR and _can_move(value)
    }
    if not tensors:
        return 0
    names = _free_names(executable, tensors)
    _rewrite(executable, names)
    for indices in _groups(tensors):
        executable.import_module(_module({names[i]: tensors[i] for i in indices}))
    return sum(tensor.raw.nbytes for tensor in tensors.values())


def _can_move(tensor: Tensor) -> bool:
    known = tensor.dtype_code in _NAMES
    return known and tensor.raw.nbytes >= _LEAST_NBYTES and tensor.raw.nbytes == tensor.nbytes


def _free_names(
    executable: VMExecutable, indices: Sequence[int] | dict[int, Tensor]
) -> dict[int, str]:
    """Choose names that no import has: the first import with a name provides it."""
    imports = list(preorder(executable))[1:]
    known = {name for module in imports for name in module.own_weights}
    prefix = "relax.constant_"
    while any(f"{prefix}{index}" in known for index in indices):
        prefix += "_"
    return {index: f"{prefix}{index}" for index in indices}


def _groups(tensors: dict[int, Tensor]) -> Iterator[list[int]]:
    """One file for tensors that keep the next one aligned, and one for each other tensor."""
    whole = [i for i, tensor in tensors.items() if tensor.raw.nbytes % _ALIGNMENT == 0]
    if whole:
        yield whole
    for index in tensors:
        if index not in whole:
            yield [index]


def _module(tensors: dict[str, Tensor]) -> SafetensorsModule:
    header, offset = {}, 0
    for name, tensor in tensors.items():
        end = offset + tensor.raw.nbytes
        places = {"shape": list(tensor.shape), "data_offsets": [offset, end]}
        header[name] = {"dtype": _NAMES[tensor.dtype_code], **places}
        offset = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % _ALIGNMENT)
    parts = [len(text).to_bytes(8, "little"), text, *(bytes(t.raw) for t in tensors.values())]
    return SafetensorsModule(b"".join(parts))


# ---- The code


def _rewrite(executable: VMExecutable, names: dict[int, str]) -> None:
    """Replace the constants by names, and their uses by registers that are filled first."""
    constants = [*executable.values, *((vm.STR, name) for name in names.values())]
    first_name = len(executable.bytecode_constants)
    name_of = {index: first_name + number for number, index in enumerate(names)}
    for index in names:
        constants[index] = (vm.INT, 0)
    functions = list(executable.functions)
    known = [f.name for f in functions if f.kind == vm.PACKED]
    if _WEIGHT not in known:
        functions.append(VMFunction(vm.PACKED, _WEIGHT, 0, 0, _ANY_ARGS, 0, ()))
    weight = next(i for i, f in enumerate(functions) if f.kind == vm.PACKED and f.name == _WEIGHT)
    code = _instructions(executable)
    offsets, words = array("q"), array("q")
    for row, function in enumerate(functions):
        if function.kind != vm.BYTECODE:
            continue
        body = code[function.start : function.end]
        used = list(dict.fromkeys(i for one in body for i in _constants_of(one) if i in names))
        registers = {i: function.register_file_size + number for number, i in enumerate(used)}
        start = len(offsets)
        fills = [[_CALL, r, weight, 1, _CONSTANT << 56 | name_of[i]] for i, r in registers.items()]
        for instruction in (*fills, *(_with_registers(one, registers) for one in body)):
            offsets.append(len(words))
            words.extend(instruction)
        size = function.register_file_size + len(used)
        functions[row] = function._replace(start=start, end=len(offsets), register_file_size=size)
    scopes = {i: scope for i, scope in executable.memory_scopes.items() if i not in names}
    executable.set_code(functions, scopes, constants, little(offsets), little(words))
    executable.layout, executable.type_key = vm.NEWEST, VMExecutable.type_key


def _instructions(executable: VMExecutable) -> list[list[int]]:
    offsets = _numbers(executable.offsets)
    words = _numbers(executable.words)
    return [list(words[a:b]) for a, b in zip(offsets, (*offsets[1:], len(words)), strict=True)]


def _constants_of(instruction: list[int]) -> Iterator[int]:
    if instruction[0] == _CALL:
        for word in instruction[4:]:
            if word >> 56 == _CONSTANT:
                yield word & (1 << 56) - 1


def _with_registers(instruction: list[int], registers: dict[int, int]) -> list[int]:
    if instruction[0] != _CALL:
        return instruction
    made = [
        registers.get(word & (1 << 56) - 1, word) if word >> 56 == _CONSTANT else word
        for word in instruction[4:]
    ]
    return [*instruction[:4], *made]


def _numbers(data: memoryview) -> tuple[int, ...]:
    return Struct(f"<{len(data) // 8}q").unpack(data)
