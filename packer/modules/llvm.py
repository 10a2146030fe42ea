"""LLVMModule: LLVM IR that llvmlite compiles."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from runtime.error import ExportError

from ..declare.c_type import parse_functions
from ..declare.declaration import SIGNED, UNSIGNED
from ..elf.object_check import check_triple
from ..embed.llvm_code import default_triple, emit, parse_ir
from ..embed.llvm_processor import DEFAULT_OPT, PLAIN, processor_of
from .host import CodeFile, RunnableModule

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..declare.c_type import Functions
    from ..declare.declaration import Declaration
    from ..levels.table import Level
    from ..target import Target

_FORMATS = ("ll", "bc", "s", "o")
_NO_TRIPLE = "unknown-unknown-unknown"  # what llvmlite.ir.Module writes when it was given none

# LLVM types that one code may be lowered to. Clang passes bool as i1 zeroext, others as i8.
_IR_TYPES = {
    **{code: ("i" + code[1:],) for code in (*SIGNED, *UNSIGNED)},
    "bool": ("i1", "i8"),
    "char": ("i8",),
    "f32": ("float",),
    "f64": ("double",),
    "void": ("void",),
    "status": ("i32",),
}


class LLVMModule(RunnableModule):
    """Host code as LLVM IR.

    Parameters
    ----------
    ir : llvmlite.ir.Module, str or bytes
        A module that was built with llvmlite, IR text, or bitcode.
    target : str, optional
        The target triple; by default that of the IR. If the IR has none, the module is compiled
        for the target of the export, or for this machine.
    functions : mapping of str to str or FunctionDeclaration, or sequence of str
        The functions to export, each with its C declaration: ``{"scale": "void(float *x,
        int64_t n)"}``. It is compared with the function's IR type.
    cpu : str, optional
        The processor that the code may need, as LLVM names it: ``"x86-64-v3"``, ``"znver4"``,
        ``"cortex-a76"``; ``"native"`` is this machine's. By default the oldest of the target. An
        export with levels (``Build(cpu=)``) names the processors itself, and refuses a
        module that names one.
    features : str
        Features of the processor to add or remove: ``"+avx2,-fma"``. With levels they are added
        to each level.
    opt : {0, 1, 2, 3}
        How much LLVM optimises. 3 also joins operations of straight-line code to vectors.

    Raises
    ------
    ExportError
        If the IR is invalid, if a declaration does not match the function's type, or if `cpu`,
        `features` or `opt` is malformed. An unknown name is an error where code is generated.
    ToolchainError
        If llvmlite is not installed, or does not support the target.

    Notes
    -----
    The code is position-independent. If functions of the IR name a processor, as Clang's do, `cpu`
    replaces it; the features that they name are kept.

    Examples
    --------
    >>> import packer
    >>> ir = "define i64 @add(i64 %a, i64 %b) { %c = add i64 %a, %b  ret i64 %c }"
    >>> packer.LLVMModule(ir, functions={"add": "int64_t(int64_t a, int64_t b)"})["add"](40, 2)
    42
    """

    type_key = "llvm"

    def __init__(
        self,
        ir: Any,
        *,
        target: str | None = None,
        functions: Functions | Sequence[str] | None = None,
        cpu: str | None = None,
        features: str = "",
        opt: int = DEFAULT_OPT,
    ) -> None:
        self._module = parse_ir(ir)
        self._processor = processor_of(cpu, features, opt)
        named = self._module.triple
        own = target or (named if named != _NO_TRIPLE else "")
        self.target = own or default_triple()
        self._is_for_one_target = bool(own)
        self._module.triple = self.target
        self.functions = parse_functions(functions, module=repr(self), entry="main")
        for declaration in self.functions:
            if declaration.abi == "safe_call":
                self._check_type(declaration)

    def _check_type(self, declaration: Declaration) -> None:
        name, expected = declaration.name, ir_type(declaration)
        try:
            function = self._module.get_function(name)
        except NameError:
            text = f"{name}: declared, but the IR defines no such function"
            raise ExportError(text, module=self.type_key) from None
        if function.is_declaration:
            text = f"{name}: the IR only declares it, expected a definition"
            raise ExportError(text, module=self.type_key)
        result, *parameters = _words(str(function.global_value_type))
        places = (expected.result, *expected.parameters)
        found = (result, *parameters)
        if len(found) != len(places) or any(f not in p for f, p in zip(found, places, strict=True)):
            meant = f"{places[0][0]} ({', '.join(p[0] for p in places[1:])})"
            text = (
                f"{name}: the IR function has type {function.global_value_type}, expected {meant} "
                f"for the declaration {declaration.text!r}"
            )
            raise ExportError(text, module=self.type_key)

    def get_source(self, fmt: str = "") -> str:
        """Return the IR text (``fmt="ll"``, the default) or assembly (``"s"``)."""
        if fmt not in ("", "ll", "s"):
            return super().get_source(fmt)
        return emit(self._module, fmt or "ll", self.target, self._processor).decode()

    def save(self, path: str | os.PathLike[str], fmt: str = "") -> None:
        """Write IR text, bitcode, assembly or an object.

        Parameters
        ----------
        path : path
            The file to write.
        fmt : {"ll", "bc", "s", "o"}
            By default the file's suffix, else ``"o"``.
        """
        fmt = fmt or Path(path).suffix.removeprefix(".")
        fmt = fmt if fmt in _FORMATS else "o"
        Path(path).write_bytes(emit(self._module, fmt, self.target, self._processor))

    @property
    def one_level(self) -> str:
        """The processor of the module, if it has one."""
        return f"cpu {self._processor.cpu!r}" if self._processor.cpu else ""

    def write_code(self, stem: Path, object_format: str, target: Target) -> CodeFile:
        """Write the code as an object, or as the IR or assembly that the linker prefers."""
        triple = target.llvm
        if self._is_for_one_target:
            check_triple(self.target, target, repr(self))
            triple = self.target
        fmt = object_format if object_format in _FORMATS else "o"
        if fmt in ("ll", "bc") and self._processor != PLAIN:
            fmt = "o"  # IR does not say for which processor it is compiled
        path = stem.with_name(f"{stem.name}.{fmt}")
        path.write_bytes(emit(self._module, fmt, triple, self._processor))
        return CodeFile(path, "o")

    def write_levels(
        self, stem: Path, object_format: str, target: Target, levels: Sequence[Level]
    ) -> CodeFile:
        """Write an object for the processor of each level."""
        del object_format
        return self._variants(stem, target, {level: self._at(level) for level in levels})

    def _at(self, level: Level) -> LLVMModule:
        made = self._copied()
        features = ",".join(filter(None, (level.llvm_features, self._processor.features)))
        made._processor = self._processor._replace(cpu=level.llvm_cpu, features=features)
        return made

    def __repr__(self) -> str:
        return f"<LLVMModule {getattr(self, 'target', '')!r}>"


class IRType(NamedTuple):
    """An LLVM function type; result and parameters each list their possible types."""

    result: tuple[str, ...]
    parameters: tuple[tuple[str, ...], ...]


def ir_type(declaration: Declaration) -> IRType:
    """Return the LLVM function type of a declaration.

    Examples
    --------
    >>> (scale,) = parse_functions({"scale": "bool(float *x, int n)"}, module="llvm")
    >>> ir_type(scale)
    IRType(result=('i1', 'i8'), parameters=(('ptr',), ('i32',)))
    """
    return IRType(
        _IR_TYPES.get(declaration.result, ("ptr",)),
        tuple(_IR_TYPES.get(parameter.code, ("ptr",)) for parameter in declaration.parameters),
    )


def _words(function_type: str) -> list[str]:
    """Split ``i64 (ptr, i64)``, result first."""
    result, _, parameters = function_type.partition(" (")
    return [result, *(word for word in parameters.rstrip(")").split(", ") if word)]
