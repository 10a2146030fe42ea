"""The C text of values: how Numba's arguments are read from a call, and its results are stored.

A value takes one variable or more, ``a0``, ``a0_1``, which are zero before they are read.
"""

from __future__ import annotations

from collections.abc import Iterator

from packer.declare.code import DTYPES

from .values import Value

C_TYPES = {
    **{
        f"{sign}{bits}": f"{word}{bits}_t"
        for sign, word in (("i", "int"), ("u", "uint"))
        for bits in (8, 16, 32, 64)
    },
    "f32": "float",
    "f64": "double",
    "bool": "uint8_t",
    "c64": "nb_complex64",
    "c128": "nb_complex128",
}
_COMPLEX = {"c64": "float", "c128": "double"}
_ALIGNMENTS = {"c64": 4, "c128": 8, "bool": 1}


def alignment_of(code: str) -> int:
    """Return the alignment of a number, in bytes."""
    return _ALIGNMENTS.get(code) or int(code[1:]) // 8


def c_type(value: Value) -> str:
    """Return the C type of a value as Numba stores it."""
    if value.kind == "number":
        return C_TYPES[value.code]
    if value.kind in ("array", "bytes"):
        return f"NB_ARRAY({value.ndim})"
    if value.kind == "str":
        return "nb_str"
    if value.kind == "optional":
        return c_type(value.items[0])
    if value.kind == "tuple":
        if not value.items:
            return "struct { char none[0]; }"
        fields = " ".join(f"{_item_type(item)} f{i};" for i, item in enumerate(value.items))
        return f"struct {{ {fields} }}"
    return "void *"


def _item_type(value: Value) -> str:
    """Return the C type of an item of a tuple: an optional one has a mark."""
    made = c_type(value)
    return f"struct {{ {made} value; uint8_t valid; }}" if value.kind == "optional" else made


def flat_types(value: Value) -> list[str]:
    """Return the C types of the arguments that a value becomes."""
    if value.kind == "number":
        part = _COMPLEX.get(value.code)
        return [part, part] if part else [C_TYPES[value.code]]
    if value.kind in ("array", "bytes"):
        return ["void *", "void *", "int64_t", "int64_t", "void *", *["int64_t"] * 2 * value.ndim]
    if value.kind == "str":
        return ["void *", "int64_t", "int32_t", "int32_t", "int64_t", "void *", "void *"]
    if value.kind == "optional":
        return [*flat_types(value.items[0]), "uint8_t"]
    if value.kind == "tuple":
        return [name for item in value.items for name in flat_types(item)]
    return ["void *"]


def flat_values(value: Value, name: str) -> list[str]:
    """Return the arguments that a value becomes, from its variable."""
    if value.kind == "number" and value.code in _COMPLEX:
        return [f"{name}.real", f"{name}.imag"]
    if value.kind in ("array", "bytes"):
        dims = [f"{name}.dims[{i}]" for i in range(2 * value.ndim)]
        fields = ("meminfo", "parent", "nitems", "itemsize", "data")
        return [*(f"{name}.{field}" for field in fields), *dims]
    if value.kind == "str":
        parts = ("data", "length", "kind", "is_ascii", "hash", "meminfo", "parent")
        return [f"{name}.{part}" for part in parts]
    if value.kind == "optional":
        return [*flat_values(value.items[0], f"{name}_value"), f"{name}_valid"]
    if value.kind == "tuple":
        return [v for i, item in enumerate(value.items) for v in flat_values(item, f"{name}_{i}")]
    return [name]


def variables(value: Value, name: str) -> Iterator[str]:
    """Declare the variables of a value."""
    if value.kind == "optional":
        yield f"uint8_t {name}_valid = 0;"
        yield from variables(value.items[0], f"{name}_value")
    elif value.kind == "tuple":
        for i, item in enumerate(value.items):
            yield from variables(item, f"{name}_{i}")
    elif value.kind in ("array", "bytes", "str") or value.code in _COMPLEX:
        yield f"{c_type(value)} {name} = {{0}};"
    else:
        yield f"{c_type(value)} {name} = 0;"


def read_lines(value: Value, name: str, given: str, fail: str) -> Iterator[str]:
    """Read a value into its variables.

    Parameters
    ----------
    value : Value
        What is expected.
    name : str
        Its variable.
    given : str
        The C expression of a pointer to the argument.
    fail : str
        The statement for a value that cannot be read; the C variable ``why`` says why.
    """
    if value.kind == "number":
        yield from _number_lines(value.code, name, given, fail)
    elif value.kind == "array":
        options = f"{DTYPES[value.code]}, {value.ndim}, '{value.layout}', {int(value.is_mutable)}"
        align = alignment_of(value.code)
        yield f"if (nb_read_array({given}, {options}, {align}, &{name})) {fail}"
    elif value.kind in ("bytes", "str"):
        yield f"if (nb_read_{value.kind}({given}, &{name})) {fail}"
    elif value.kind == "none":
        yield f"if (({given})->type_index != DSO_NONE) {fail}"
    elif value.kind == "pointer":
        dtype = DTYPES.get(value.code, "DSO_DT_ANY, 8")
        yield f"if (nb_read_pointer({given}, {dtype}, &{name})) {fail}"
    elif value.kind == "optional":
        yield f"if (({given})->type_index != DSO_NONE) {{"
        for line in read_lines(value.items[0], f"{name}_value", given, fail):
            yield f"  {line}"
        yield f"  {name}_valid = 1;"
        yield "}"
    else:
        yield "{"
        yield f"  const dso_any *items = nb_items({given}, {len(value.items)});"
        yield f"  if (!items) {fail}"
        for i in range(len(value.items)):  # an inner tuple has variables of the same names
            yield f"  const dso_any *{name}_item_{i} = &items[{i}];"
        for i, item in enumerate(value.items):
            for line in read_lines(item, f"{name}_{i}", f"{name}_item_{i}", fail):
                yield f"  {line}"
        yield "}"


def _number_lines(code: str, name: str, given: str, fail: str) -> Iterator[str]:
    if code in _COMPLEX:
        part = _COMPLEX[code]
        yield "{"
        yield "  double parts[2] = {0, 0};"
        yield f"  if (nb_read_complex({given}, parts)) {fail}"
        yield f"  {name}.real = ({part})parts[0];"
        yield f"  {name}.imag = ({part})parts[1];"
        yield "}"
        return
    if code in ("f32", "f64"):
        local, read = "double", "float"
    elif code == "bool":
        local, read = "uint8_t", "bool"
    else:
        local, read = ("uint64_t", "unsigned") if code[0] == "u" else ("int64_t", "signed")
    yield "{"
    yield f"  {local} number = 0;"
    yield f"  if ((why = nb_read_{read}({given}, &number))) {fail}"
    yield f"  {name} = ({C_TYPES[code]})number;"
    yield "}"


def release_lines(value: Value, name: str) -> Iterator[str]:
    """Drop the references that the variables of an argument have."""
    for meminfo in memory_of(value, name):
        yield f"NRT_decref({meminfo});"


def memory_of(value: Value, name: str) -> Iterator[str]:
    """Return the MemInfo of each text among the variables of an argument."""
    if value.kind == "str":
        yield f"{name}.meminfo"
    elif value.kind == "optional":
        yield from memory_of(value.items[0], f"{name}_value")
    elif value.kind == "tuple":
        for i, item in enumerate(value.items):
            yield from memory_of(item, f"{name}_{i}")


def keep_lines(value: Value, stored: str) -> Iterator[str]:
    """Let the memory of a result outlive the call."""
    if value.kind in ("array", "bytes", "str"):
        yield f"nrt_call_keep({stored}.meminfo);"
    elif value.kind == "optional":  # without a value, the rest of it is not set
        yield from keep_lines(value.items[0], stored)
    elif value.kind == "tuple":
        for i, item in enumerate(value.items):
            part = f"{stored}.f{i}"
            if item.kind != "optional":
                yield from keep_lines(item, part)
                continue
            for line in keep_lines(item, f"{part}.value"):
                yield f"if ({part}.valid & 1) {line}"


def give_expression(value: Value, stored: str, result: str) -> str:
    """Return the C call that stores one value, no tuple, as a result; 0 if it succeeds.

    Parameters
    ----------
    value : Value
        What the function returned.
    stored : str
        The C expression of it.
    result : str
        The C expression of a pointer to the `dso_any`.
    """
    if value.kind == "number":
        return f"dso_give_{_give(value.code)}({result}, {_passed(value.code, stored)})"
    if value.kind == "array":
        dtype = f"(DLDataType){{{DTYPES[value.code]}, 1}}"
        place = f"(const nb_array *)(const void *)&{stored}"
        return f"nb_give_array({result}, {place}, {value.ndim}, {dtype}, args, num_args)"
    if value.kind == "bytes":
        return f"nb_give_bytes({result}, (const nb_array *)(const void *)&{stored})"
    if value.kind == "str":
        return f"nb_give_str({result}, &{stored})"
    if value.kind == "pointer":
        return f"dso_give_address({result}, {stored})"
    return f"nb_give_none({result})"


def _give(code: str) -> str:
    named = {"bool": "bool", "f32": "float", "f64": "float", "c64": "complex64"}
    named["c128"] = "complex128"
    return named.get(code) or ("signed" if code[0] == "i" else "unsigned")


def _passed(code: str, stored: str) -> str:
    if code not in _COMPLEX:
        return stored
    return f"__builtin_complex({stored}.real, {stored}.imag)"


def give_lines(value: Value, stored: str, result: str, depth: int = 0) -> Iterator[str]:
    """Store a value as a result; sets the C variable ``status``."""
    if value.kind == "optional":
        inner = value.items[0]
        condition = f"!({stored}.valid & 1)" if depth else "code == NB_NONE"
        stored = f"{stored}.value" if depth else stored
        yield f"if ({condition}) status = nb_give_none({result});"
        yield "else {"
        yield from (f"  {line}" for line in give_lines(inner, stored, result, depth))
        yield "}"
        return
    if value.kind != "tuple":
        yield f"if (!status) status = {give_expression(value, stored, result)};"
        return
    count, items = len(value.items), f"items_{depth}"
    yield "{"
    yield f"  dso_any {items}[{max(count, 1)}];"
    yield f"  __builtin_memset({items}, 0, sizeof {items});"
    for i, item in enumerate(value.items):
        for line in give_lines(item, f"{stored}.f{i}", f"&{items}[{i}]", depth + 1):
            yield f"  {line}"
    yield f"  status = dso_give_items({result}, {items}, {count}, status);"
    yield "}"
