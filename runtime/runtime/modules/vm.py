"""relax.VMExecutable: a model as bytecode of TVM's relax virtual machine.

    u64 magic 0xD225DE2F4214151E, string version "0.14"
    vector<function>     i32 kind, string name, i64 start, i64 end, i64 num_args,
                         i64 register_file_size, vector<string> parameter names
    u64 n, n x (i64 constant, string memory scope)
    u64 n, n x constant  i32 tag, then a value: 1 int = i64, 3 float = f64, 5 DLDataType,
                         65 string, 69 shape = vector<i64>, 70 NDArray
    vector<i64>          the index in the words of each instruction
    vector<i64>          the words (runtime/native/vm/code.h)

Version 1, of TVM 0.16 to 0.22, has the magic 0xD225DE2F4214151D and no memory scopes. Its tags were
others at first (`TAGS`), and up to 0.19 the type key was relax.Executable. Where payloads had no
length, a u64 length is before the magic. The bytecode is verified when it is read.
(TVM, src/runtime/vm/executable.cc)
"""

from __future__ import annotations

from .._core import Bytecode
from ..abi import BINARY_SERIALIZABLE, RUNNABLE
from ..error import BlobFormatError
from ..module import Module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, NamedTuple

    from .._core import Session as CoreSession
    from ..serial.stream import Reader, Writer
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

    class VMLayout(NamedTuple):
        """The differences between versions of the payload."""

        magic: int
        tags: Mapping[int, int]
        is_framed: bool

    Constant = tuple[int, Any]
else:
    from collections import namedtuple

    VMFunction = namedtuple(
        "VMFunction", "kind name start end num_args register_file_size param_names"
    )
    VMLayout = namedtuple("VMLayout", "magic tags is_framed")

MAGIC, MAGIC_V1 = 0xD225DE2F4214151E, 0xD225DE2F4214151D
VERSION = "0.14"
LEGACY_KEY = "relax.Executable"

# executable.h, VMFuncInfo::FuncKind.
PACKED, BYTECODE, COMPILED = 0, 1, 2

# TVM FFI type indices of constants.
INT, FLOAT, DATA_TYPE, STR, SHAPE, TENSOR = 1, 3, 5, 65, 69, 70

# The tags of constants, with TVM FFI's type index: current, TVM 0.21's, and older tags.
TAGS = (
    {index: index for index in (INT, FLOAT, DATA_TYPE, STR, SHAPE, TENSOR)},
    {INT: INT, FLOAT: FLOAT, DATA_TYPE: DATA_TYPE, STR: STR, 71: SHAPE, 72: TENSOR},
    {0: TENSOR, 1: DATA_TYPE, 2: SHAPE, 3: STR, 4: INT, 5: FLOAT},
)
NEWEST = VMLayout(MAGIC, TAGS[0], False)


class VMExecutable(Module):
    """A model as bytecode; its imports have the operators.

    Parameters
    ----------
    functions : sequence of VMFunction
        The function table: functions of the bytecode, and functions that it calls by name.
    memory_scopes : mapping of int to str
        The memory of constants that are not in the default one.
    constants : sequence of (int, object)
        TVM FFI's type index, and a Tensor, shape, str, int, float, or data type.
    offsets, words : buffer
        The instructions, as 64-bit words; viewed, not copied.
    layout : VMLayout
        How the payload is written; that of TVM 0.23 by default.

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
        layout: VMLayout = NEWEST,
    ) -> None:
        self.layout = layout
        self.set_code(functions, memory_scopes, constants, offsets, words)

    def set_code(
        self,
        functions: Any,
        memory_scopes: Mapping[int, str],
        constants: Any,
        offsets: Any,
        words: Any,
    ) -> None:
        """Replace all but the imports; takes what the class does, in today's constants."""
        self.functions: tuple[VMFunction, ...] = tuple(VMFunction(*row) for row in functions)
        self.memory_scopes = dict(memory_scopes)
        self.bytecode_constants: tuple[Constant, ...] = tuple(constants)
        self.offsets = memoryview(offsets).cast("B")
        self.words = memoryview(words).cast("B")
        self._machine: Any = None
        rows = tuple(
            (
                f.name.encode("utf-8", "surrogateescape"),
                f.kind,
                f.start,
                f.end,
                f.num_args,
                f.register_file_size,
                len(f.param_names),
            )
            for f in self.functions
        )
        self.bytecode = Bytecode(rows, len(self.bytecode_constants), self.offsets, self.words)

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

    def find_with(self, session: CoreSession, name: str) -> Callable[..., Any] | None:
        """Find a function of the bytecode, whose calls use a session."""
        row = self.table_row(name)
        if row is None or self.find_function(name) is None:
            return None
        return session.function(self._machine, name, tuple(row.param_names), self)

    def function_names(self) -> list[str]:
        """The names of the functions of the bytecode."""
        return [f.name for f in self.functions if f.kind != PACKED]

    def table_row(self, name: str) -> VMFunction | None:
        """The row of one of `function_names` in the function table, or None."""
        found = (f for f in self.functions if f.name == name and f.kind != PACKED)
        return next(found, None)

    def signature(self, name: str) -> str:
        """The signature of one of `function_names`, as ``"main(x, w)"``.

        It has the types of inputs and outputs if the record of the model has the function.
        """
        try:
            record = self.model_record
        except BlobFormatError:
            record = None
        ends = record.ends_of(name) if record is not None else None
        if ends is not None:
            from ..graph.model_record import signature_text

            return signature_text(name, *ends)
        row = self.table_row(name)
        return f"{name}({', '.join(row.param_names if row else ())})"

    @property
    def own_callees(self) -> frozenset[str]:
        """The names of the functions that the bytecode calls."""
        return frozenset(f.name for f in self.functions if f.kind == PACKED)

    # ---- the file

    @property
    def values(self) -> list[Constant]:
        """The constants as a machine uses them: old models write bool as uint1."""
        if self.layout.magic == MAGIC:
            return list(self.bytecode_constants)
        from .vm_payload import with_bool

        return [with_bool(constant) for constant in self.bytecode_constants]

    @property
    def own_weights(self) -> Mapping[str, Tensor]:
        """The constants that are tensors, by ``constant_<index>``."""
        pairs = enumerate(self.values)
        return {f"constant_{i}": value for i, (index, value) in pairs if index == TENSOR}

    def get_source(self, fmt: str = "") -> str:
        """Return the bytecode as text, in TVM's form."""
        if fmt not in ("", "text"):
            return super().get_source(fmt)
        from ..relax.text import disassemble

        return disassemble(self)

    def save_to_binary(self, writer: Writer) -> None:
        """Write the payload above; a payload that was read is written unchanged."""
        from .vm_payload import write

        write(self, writer)


def decode(reader: Reader, type_key: str) -> VMExecutable:
    """Read a payload of ``relax.VMExecutable``, or of old models, of any version."""
    from .vm_payload import read

    return read(reader, type_key)


def load(reader: Reader) -> VMExecutable:
    """Read the payload that `VMExecutable.save_to_binary` writes, if the core accepts it."""
    return decode(reader.accepted(VMExecutable.type_key), VMExecutable.type_key)
