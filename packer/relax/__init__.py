"""Bytecode of relax's virtual machine: the writer beside `runtime/relax/`, which runs it."""

from __future__ import annotations

from runtime.modules.vm import VMExecutable

from .assembler import MACHINE, NOTHING, Code, DataType, Label, Program, Register, Value

__all__ = ["MACHINE", "NOTHING", "Code", "DataType", "Label", "Program", "Register", "Value"]
__all__ += ["VMExecutable"]
