"""relax.VMExecutable: a model as bytecode of TVM's relax virtual machine.

    u64 magic 0xD225DE2F4214151E, string version "0.14"
    vector<function>     i32 kind, string name, i64 start, i64 end, i64 num_args,
                         i64 register_file_size, vector<string> parameter names
    u64 n, n x (i64 constant, string memory scope)
    u64 n, n x constant  i32 type index, then a value: 1 int = i64, 3 float = f64, 5 DLDataType,
                         65 string, 69 shape = vector<i64>, 70 NDArray
    vector<i64>          the index in the words of each instruction
    vector<i64>          the words (runtime/native/vm/code.h)

The bytecode is verified when it is read. (TVM, src/runtime/vm/executable.cc)
"""

from __future__ import annotations

from struct import Struct

from .._core import Bytecode
from ..abi import BINARY_SERIALIZABLE, RUNNABLE
from ..error import BytecodeError
from ..module import Module
from ..tensors.ndarray import read_ndarray, write_ndarray

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, NamedTuple

    from ..stream import Reader, Writer
    from ..tensors.tensor import Tensor

    class VMFunction(NamedTuple):
        """A row of the function table."""

        kind: int
        name: str
        start: int
        end: int
        num_args: int
        register_file_size: int
        param_names: tuple[str, ...]

    Constant = tuple[int, Any]
else:
    from collections import namedtuple

    VMFunction = namedtuple(
        "VMFunction", "kind name start end num_args register_file_size param_names"
    )

MAGIC = 0xD225DE2F4214151E
VERSION = "0.14"

# executable.h, VMFuncInfo::FuncKind.
PACKED, BYTECODE, COMPILED = 0, 1, 2

# TVM FFI type indices of constants.
INT, FLOAT, DATA_TYPE, STR, SHAPE, TENSOR = 1, 3, 5, 65, 69, 70

_F64 = Struct("<d")
_FUNCTION_NBYTES = 4 + 8 + 4 * 8 + 8
_MAX_NDIM = 64


class VMExecutable(Module):
    """A model as bytecode; its imports have the operators.

    Parameters
    ----------
    functions : sequence of VMFunction
        The function table: functions of the bytecode, and those that it calls by name.
    memory_scopes : mapping of int to str
        The memory of constants that are not in the default one.
    constants : sequence of (int, object)
        TVM FFI's type index, and a Tensor, shape, str, int, float, or data type.
    offsets, words : buffer
        The instructions, as 64-bit words; viewed, not copied.

    Raises
    ------
    BytecodeError
        The bytecode is malformed.

    Notes
    -----
    ``module["main"](x)`` runs the model on the CPU. Arrays that are contiguous and aligned to 64
    bytes are passed without a copy, tuples are passed as tuples, and results are new tensors. The
    machine is made at the first look-up; several threads may call its functions.
    `runtime.relax_vm.VirtualMachine` runs the model on other devices.
    """

    type_key = "relax.VMExecutable"
    property_mask = BINARY_SERIALIZABLE | RUNNABLE

    def __init__(
        self,
        functions: Any,
        memory_scopes: Mapping[int, str],
        constants: Any,
        offsets: Any,
        words: Any,
    ) -> None:
        self.functions: tuple[VMFunction, ...] = tuple(VMFunction(*row) for row in functions)
        self.memory_scopes = dict(memory_scopes)
        self.constants: tuple[Constant, ...] = tuple(constants)
        self.offsets = memoryview(offsets).cast("B")
        self.words = memoryview(words).cast("B")
        self._machine: Any = None
        rows = tuple(
            (f.name, f.kind, f.start, f.end, f.num_args, f.register_file_size, len(f.param_names))
            for f in self.functions
        )
        self.bytecode = Bytecode(rows, len(self.constants), self.offsets, self.words)

    # ---- functions

    def find_function(self, name: str) -> Callable[..., Any] | None:
        """Find a function of the bytecode, or the one that makes a virtual machine."""
        if name == "vm_load_executable":
            from ..relax.machine import VirtualMachineModule

            return lambda: VirtualMachineModule(self)
        if self.table_row(name) is None:
            return None
        from ..relax.machine import function_of, make_machine

        if self._machine is None:
            self._machine = make_machine(self)
        return function_of(self._machine, self, name)

    def function_names(self) -> list[str]:
        """The names of the functions of the bytecode."""
        return [f.name for f in self.functions if f.kind != PACKED]

    def table_row(self, name: str) -> VMFunction | None:
        """The row of one of `function_names` in the function table, or None."""
        found = (f for f in self.functions if f.name == name and f.kind != PACKED)
        return next(found, None)

    def signature(self, name: str) -> str:
        """The signature of one of `function_names`, as ``"main(x, w)"``."""
        row = self.table_row(name)
        return f"{name}({', '.join(row.param_names if row else ())})"

    # ---- the file

    @property
    def own_weights(self) -> Mapping[str, Tensor]:
        """The constants that are tensors, by ``constant_<index>``."""
        pairs = enumerate(self.constants)
        return {f"constant_{i}": value for i, (index, value) in pairs if index == TENSOR}

    def get_source(self, fmt: str = "") -> str:
        """Return the bytecode as text, in TVM's form."""
        if fmt not in ("", "text"):
            return super().get_source(fmt)
        from ..relax.text import disassemble

        return disassemble(self)

    def save_to_binary(self, writer: Writer) -> None:
        """Write the payload above; a payload that was read is written unchanged."""
        writer.write_u64(MAGIC)
        writer.write_string(VERSION)
        writer.write_vector(self.functions, lambda function: _write_function(writer, function))
        writer.write_u64(len(self.memory_scopes))
        for index, scope in self.memory_scopes.items():
            writer.write_i64(index)
            writer.write_string(scope)
        writer.write_vector(self.constants, lambda constant: _write_constant(writer, constant))
        for words in (self.offsets, self.words):
            writer.write_u64(len(words) // 8)
            writer.write_raw(words)


def loader(type_key: str) -> Callable[[Reader], VMExecutable]:
    """Make the loader of ``relax.VMExecutable``."""
    return load


def load(reader: Reader) -> VMExecutable:
    """Read the payload that `VMExecutable.save_to_binary` writes, and verify it."""
    _read_header(reader)
    places: list[int] = []
    functions = _read_functions(reader, places)
    scopes_at = reader.offset
    scopes = _read_scopes(reader)
    constants = reader.read_vector(lambda: _read_constant(reader), 8)
    for index in scopes:
        if not 0 <= index < len(constants):
            text = f"memory scope of constant {index}, expected less than {len(constants)}"
            raise reader.error(text, scopes_at)
    tables = {name: _read_words(reader) for name in ("offsets", "words")}
    (_, offsets), (_, words) = tables.values()
    try:
        return VMExecutable(functions, scopes, constants, offsets, words)
    except BytecodeError as error:
        table, index = error.table, error.index
        at = places[index] if table == "functions" else tables[table][0] + 8 * index
        raise reader.error(error.message, at) from None


# ---- Each field: reader and writer


def _read_header(reader: Reader) -> None:
    start = reader.offset
    if (magic := reader.read_u64()) != MAGIC:
        raise reader.error(f"magic {magic:#x}, expected {MAGIC:#x}", start)
    start = reader.offset
    if (version := reader.read_string()) != VERSION:
        raise reader.error(f"bytecode version {version!r}, expected {VERSION!r}", start)


def _read_functions(reader: Reader, places: list[int]) -> list[VMFunction]:
    """Read the function table; append the offset of each row to `places`."""
    seen: set[str] = set()

    def read() -> VMFunction:
        start = reader.offset
        places.append(start)
        kind, name = reader.read_i32(), reader.read_string()
        if not name or "\0" in name or name in seen:
            raise reader.error(f"function name {name!r}, expected a unique one", start)
        seen.add(name)
        numbers = (reader.read_i64(), reader.read_i64(), reader.read_i64(), reader.read_i64())
        return VMFunction(kind, name, *numbers, tuple(reader.read_vector(reader.read_string, 8)))

    return reader.read_vector(read, _FUNCTION_NBYTES)


def _write_function(writer: Writer, function: VMFunction) -> None:
    writer.write_i32(function.kind)
    writer.write_string(function.name)
    for number in function[2:6]:
        writer.write_i64(number)
    writer.write_vector(function.param_names, writer.write_string)


def _read_scopes(reader: Reader) -> dict[int, str]:
    scopes: dict[int, str] = {}
    for _ in range(reader.read_count(16)):
        start = reader.offset
        index = reader.read_i64()
        if index in scopes:
            raise reader.error(f"a second memory scope of constant {index}, expected one", start)
        scopes[index] = reader.read_string()
    return scopes


def _read_constant(reader: Reader) -> Constant:
    start = reader.offset
    type_index = reader.read_i32()
    readers: dict[int, Callable[[], Any]] = {
        INT: reader.read_i64,
        FLOAT: lambda: _F64.unpack(reader.read_raw(8, "a float"))[0],
        DATA_TYPE: reader.read_dtype,
        STR: reader.read_string,
        SHAPE: lambda: _read_shape(reader),
        TENSOR: lambda: read_ndarray(reader),
    }
    if type_index not in readers:
        text = f"constant of type index {type_index}, expected one of {sorted(readers)}"
        raise reader.error(text, start)
    return type_index, readers[type_index]()


def _write_constant(writer: Writer, constant: Constant) -> None:
    type_index, value = constant
    writers: dict[int, Callable[[Any], None]] = {
        INT: writer.write_i64,
        FLOAT: lambda number: writer.write_raw(_F64.pack(number)),
        DATA_TYPE: writer.write_dtype,
        STR: writer.write_string,
        SHAPE: lambda shape: writer.write_vector(shape, writer.write_i64),
        TENSOR: lambda array: write_ndarray(writer, array),
    }
    writer.write_i32(type_index)
    writers[type_index](value)


def _read_shape(reader: Reader) -> tuple[int, ...]:
    start = reader.offset
    shape = tuple(reader.read_vector(reader.read_i64, 8))
    if len(shape) > _MAX_NDIM or any(extent < 0 for extent in shape):
        text = f"shape {shape[:8]}, expected at most {_MAX_NDIM} extents of at least 0"
        raise reader.error(text, start)
    return shape


def _read_words(reader: Reader) -> tuple[int, memoryview]:
    """Read words; return the offset of the first, and a view of them."""
    count = reader.read_count(8)
    return reader.offset, reader.read_raw(8 * count, "code")
