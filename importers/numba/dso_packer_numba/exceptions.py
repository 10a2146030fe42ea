"""Exceptions of compiled code: their class and text, decided when the code is compiled.

Numba stores each exception that code can raise as a pickled object. Here it is a constant
`nb_exception` (support/array.h). A text that has values of the run has a mark for each, which
`nb_fail` replaces (support/message.c).
"""

from __future__ import annotations

import builtins
import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from llvmlite import ir
from numba.core import callconv, cgutils, errors, types

_INT, _WORD = ir.IntType(32), ir.IntType(64)
_POINTER = ir.IntType(8).as_pointer()
_STR_WORDS = 6  # of a str as Numba stores it
_MARK = "\x01"


class Record(NamedTuple):
    """The fields of `nb_exception`, in its order."""

    kind: str
    text: str
    function: str
    file: str
    line: int


def record_of(kind: Any, arguments: Sequence[Any], place: Any, text: str | None = None) -> Record:
    """Return the record of an exception.

    Parameters
    ----------
    kind : type or None
        The class; None to raise the exception that is being handled.
    arguments : sequence
        Its arguments.
    place : (function, file, line) or None
        Where it is raised.
    text : str, optional
        Its text, if that is not known from the arguments.
    """
    function, file, line = place or ("", "", 0)
    raised = kind or RuntimeError
    found = text if text is not None else _text_of(kind, arguments)
    name, known = raised.__name__, _builtin_of(raised)
    if known != name:
        found = f"{name}: {found}" if found else name
    return Record(known, found, function, os.path.basename(file), line)


def _builtin_of(kind: Any) -> str:
    """Return the name of the class, or of its nearest base that every program has."""
    for base in kind.__mro__:
        name: str = base.__name__
        if vars(builtins).get(name) is base:
            return name
    return "Exception"


def _text_of(kind: Any, arguments: Sequence[Any]) -> str:
    if kind is None:
        return "No active exception to reraise"
    if issubclass(kind, KeyError) and len(arguments) == 1:
        return str(arguments[0])  # a KeyError shows the repr of its text
    try:
        return str(kind(*arguments))
    except Exception:  # a class of the user's that expects other arguments
        return ", ".join(map(str, arguments))


def constant_of(context: Any, module: Any, record: Record) -> Any:
    """Return the constant that an error points to, as a pointer to bytes."""
    texts = [_text_constant(context, module, text) for text in record[:-1]]
    fields = ir.Constant.literal_struct([*texts, ir.Constant(_INT, record.line)])
    return context.insert_unique_const(module, name_of(record), fields).bitcast(_POINTER)


def name_of(record: Record) -> str:
    """Return the name of the constant of a record."""
    return f".const.exception.{'.'.join(_hex(str(part)) for part in record)}"


def _text_constant(context: Any, module: Any, text: str) -> Any:
    data = text.replace("\0", "\\0").encode("utf-8", "replace") + b"\0"
    made = context.insert_unique_const(
        module, f".const.text.{data.hex()}", cgutils.make_bytearray(data)
    )
    return made.bitcast(_POINTER)


def _hex(text: str) -> str:
    return text.encode("utf-8", "replace").hex()


class CallConv(callconv.CPUCallConv):
    """Numba's calling convention, with exceptions that need no Python."""

    def set_dynamic_user_exc(
        self,
        builder: Any,
        exc: Any,
        exc_args: Sequence[Any],
        nb_types: Sequence[Any],
        loc: Any = None,
        func_name: str | None = None,
    ) -> None:
        """Store an exception whose text has values of the run."""
        _, _, place = self.build_excinfo_struct(exc, exc_args, loc, func_name)
        text, words = self._dynamic_text(builder, exc, exc_args, nb_types)
        record = constant_of(self.context, builder.module, record_of(exc, (), place, text))
        size = self.context.get_constant(types.intp, 8 * max(1, len(words)))
        values = self.context.nrt.allocate(builder, size)
        slots = builder.bitcast(values, _WORD.as_pointer())
        for index, word in enumerate(words):
            builder.store(word, builder.gep(slots, [ir.Constant(_INT, index)]))
        pointee = callconv.excinfo_t
        size = self.context.get_constant(types.intp, self.context.get_abi_sizeof(pointee))
        made = builder.bitcast(self.context.nrt.allocate(builder, size), callconv.excinfo_ptr_t)
        null = cgutils.get_null_value(_POINTER)
        fields = (record, ir.Constant(_INT, 1), values, null, ir.Constant(_INT, 1))
        for index, field in enumerate(fields):
            place_of = builder.gep(made, [ir.Constant(_INT, 0), ir.Constant(_INT, index)])
            builder.store(field, place_of)
        builder.store(made, self._get_excinfo_argument(builder.function))

    def _dynamic_text(
        self, builder: Any, exc: Any, exc_args: Sequence[Any], nb_types: Sequence[Any]
    ) -> tuple[str, list[Any]]:
        """Return the text with marks, and the words of the values."""
        is_one = len(exc_args) == 1
        parts: list[str] = []
        words: list[Any] = []
        for value, kind in zip(exc_args, nb_types, strict=True):
            if kind is None or not isinstance(value, ir.Value):
                parts.append(str(value) if is_one else repr(value))
                continue
            mark, own = self._value_words(builder, value, types.unliteral(kind), is_one)
            parts.append(_MARK + mark)
            words += own
        text = parts[0] if is_one else f"({', '.join(parts)})"
        return text, words

    def _value_words(
        self, builder: Any, value: Any, kind: Any, is_one: bool
    ) -> tuple[str, list[Any]]:
        """Return the mark of a value, and its words."""
        if isinstance(kind, types.Boolean):
            return "b", [builder.zext(value, _WORD)]
        if isinstance(kind, types.Integer):
            widen: Callable[..., Any] = builder.sext if kind.signed else builder.zext
            word = value if kind.bitwidth == 64 else widen(value, _WORD)
            return ("i" if kind.signed else "u"), [word]
        if isinstance(kind, types.Float):
            double = value if kind.bitwidth == 64 else builder.fpext(value, ir.DoubleType())
            return "f", [builder.bitcast(double, _WORD)]
        if isinstance(kind, types.UnicodeType):
            place = cgutils.alloca_once_value(builder, value)
            slots = builder.bitcast(place, _WORD.as_pointer())
            gaps = (ir.Constant(_INT, index) for index in range(_STR_WORDS))
            return ("s" if is_one else "r"), [builder.load(builder.gep(slots, [g])) for g in gaps]
        what = f"the message of an exception has a value of type {kind}, expected a number or str"
        raise errors.UnsupportedError(what)

    def raise_error(self, builder: Any, api: Any, status: Any) -> None:
        """Note the exception of a kernel, which cannot return it; the wrapper raises it."""
        del api
        function_type = ir.FunctionType(ir.VoidType(), [_POINTER])
        note = cgutils.get_or_insert_function(builder.module, function_type, "nb_note")
        with builder.if_then(status.is_user_exc):
            builder.call(note, [builder.bitcast(status.excinfoptr, _POINTER)])

    def return_user_exc(self, builder: Any, *args: Any, **kwargs: Any) -> None:
        """Raise; in a `try` this goes to its handler."""
        if getattr(builder, "_in_try_block", False):
            _tell_caught(builder)
        super().return_user_exc(builder, *args, **kwargs)

    def return_status_propagate(self, builder: Any, status: Any) -> None:
        """Raise what a called function has raised; in a `try` go on."""
        super().return_status_propagate(builder, status)
        _tell_caught(builder)


def _tell_caught(builder: Any) -> None:
    """Say at run time that an exception is handled, whose function has released nothing."""
    told = ir.FunctionType(ir.VoidType(), [])
    builder.call(cgutils.get_or_insert_function(builder.module, told, "nb_caught"), [])
