"""Structs by value: the C text that defines them, reads them from Arrays and stores them as such.

The glue defines a struct of the same fields, so the compiler passes it as the user's is passed; it
asserts the size and the offsets that the declaration names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .c_text import c_string, variable
from .code import Kind, Scope, kind_of, split_extents, struct_of
from .declaration import Declaration, Struct, Value


class Structs:
    """The structs of one library that its functions pass by value."""

    def __init__(self) -> None:
        self._names: dict[Struct | Value, str] = {}

    def scope(self, declaration: Declaration) -> Scope:
        """Return the structs that a declaration's codes name."""
        structs = {struct.name: struct for struct in declaration.structs}
        names = {name: self._names[s] for name, s in structs.items() if s in self._names}
        known = {f"={{{v.name}}}": self._names[v] for v in declaration.values if v in self._names}
        return Scope(structs, names | known)

    def add(self, declaration: Declaration) -> Iterator[str]:
        """Define those structs of a declaration that are new and passed by value."""
        wanted = _by_value(declaration)
        for struct in declaration.structs:
            if struct.name in wanted and struct not in self._names:
                name = self._names[struct] = f"dso_struct_{len(self._names)}"
                yield from _definition(name, struct, self.scope(declaration))
        for value in declaration.values:
            if value not in self._names:
                name = self._names[value] = f"dso_struct_{len(self._names)}"
                yield from _bytes_definition(name, value)


def _by_value(declaration: Declaration) -> set[str]:
    """The names of the structs that codes of values name, and of the structs that these contain."""
    codes = [p.code for p in declaration.passed] + [declaration.result]
    codes += [p.code for p in declaration.returned]
    for callback in declaration.callbacks:
        codes += [callback.result, *(p.code for p in callback.parameters)]
    names = {struct_of(code) for code in codes if code[0] == "{"}
    for struct in reversed(declaration.structs):
        if struct.name in names:
            names |= {struct_of(f.code) for f in struct.fields if f.code[0] == "{"}
    return names


def _definition(name: str, struct: Struct, scope: Scope) -> Iterator[str]:
    yield f"typedef struct {name} {{"
    for field in struct.fields:
        code, extents = split_extents(field.code)
        dimensions = "".join(f"[{extent}]" for extent in extents)
        yield f"  {kind_of(code, scope).c_type} {field.name}{dimensions};"
    yield f"}} {name};"
    yield f"DSO_ASSERT(sizeof({name}) == {struct.size});"
    yield from (f"DSO_ASSERT(offsetof({name}, {f.name}) == {f.offset});" for f in struct.fields)
    yield f"static const dso_parameter {name}_fields[] = {{"
    for field in struct.fields:
        spelling = kind_of(field.code, scope).spelling
        yield f"  {{{c_string(field.name)}, {c_string(spelling)}}},"
    yield "};"
    yield from _take(name, struct, scope)
    yield from _give(name, struct, scope)


def _bytes_definition(name: str, value: Value) -> Iterator[str]:
    """A struct or union whose bytes are copied from what callers pass, and into what they get."""
    short = name.removeprefix("dso_")
    yield f"__extension__ typedef {value.definition} {name};"
    yield f"DSO_ASSERT(sizeof({name}) == {value.size});"
    yield f"DSO_INLINE int dso_take_{short}(const dso_function *function, const dso_any *args,"
    yield f"    int32_t index, {name} *out) {{"
    yield "  return dso_take_value(function, args, index, sizeof *out, out);"
    yield "}"
    yield f"DSO_INLINE int dso_give_{short}(dso_any *result, {name} value) {{"
    yield "  return dso_give_value(result, &value, sizeof value);"
    yield "}"


def _take(name: str, struct: Struct, scope: Scope) -> Iterator[str]:
    count = len(struct.fields)
    short = name.removeprefix("dso_")
    yield f"DSO_INLINE int dso_take_{short}(const dso_function *function, const dso_any *args,"
    yield f"    int32_t index, {name} *out) {{"
    yield f"  dso_function at = dso_fields_of(function, index, {name}_fields);"
    yield f'  const dso_any *items = dso_take_items(function, args, index, {count}, "fields");'
    yield "  if (!items) return -1;"
    for i, field in enumerate(struct.fields):
        kind = kind_of(field.code, scope)
        extents = split_extents(field.code)[1]
        yield from _take_value(kind, extents, f"out->{field.name}", ("&at", "items", str(i)), 1)
    yield "  return 0;"
    yield "}"


def _take_value(
    kind: Kind, extents: Sequence[str], target: str, place: tuple[str, str, str], depth: int
) -> Iterator[str]:
    """Read one field, or the items of an array in it; `place` is the function, args and index."""
    indent = "  " * depth
    given = ", ".join(place)
    if not extents:
        options = ", ".join([given, *kind.options, "&value"])
        yield f"{indent}{{"
        yield from (f"{indent}  {line}" for line in variable(kind.local, "value"))
        is_address = kind.c_type[-1] == "*" and kind.take != "address"
        if is_address:
            _, items, index = place
            address = f"({kind.local}){items}[{index}].v_ptr"
            yield f"{indent}  if ({items}[{index}].type_index == DSO_OPAQUE_PTR) value = {address};"
        other = "else " if is_address else ""
        yield f"{indent}  {other}if (dso_take_{kind.take}({options})) return -1;"
        cast = f"({kind.c_type})" if kind.local != kind.c_type else ""
        yield f"{indent}  {target} = {cast}value;"
        yield f"{indent}}}"
        return
    function, _, index = place
    size, i = extents[0], f"i{depth}"
    yield f"{indent}{{"
    yield f"{indent}  dso_function at{depth} = dso_items_of({function}, {index});"
    yield f'{indent}  const dso_any *items{depth} = dso_take_items({given}, {size}, "items");'
    yield f"{indent}  if (!items{depth}) return -1;"
    yield f"{indent}  for (int32_t {i} = 0; {i} < {size}; {i}++)"
    inner = (f"&at{depth}", f"items{depth}", i)
    yield from _take_value(kind, extents[1:], f"{target}[{i}]", inner, depth + 1)
    yield f"{indent}}}"


def _give(name: str, struct: Struct, scope: Scope) -> Iterator[str]:
    count = len(struct.fields)
    short = name.removeprefix("dso_")
    yield f"DSO_INLINE int dso_give_{short}(dso_any *result, {name} value) {{"
    yield f"  dso_any items[{count}];"
    yield "  int status = 0;"
    yield "  __builtin_memset(items, 0, sizeof items);"
    for i, field in enumerate(struct.fields):
        kind = kind_of(field.code, scope)
        yield from _give_value(
            kind, split_extents(field.code)[1], f"&items[{i}]", f"value.{field.name}", 1
        )
    yield f"  return dso_give_items(result, items, {count}, status);"
    yield "}"


def _give_value(
    kind: Kind, extents: Sequence[str], result: str, value: str, depth: int
) -> Iterator[str]:
    """Store one field, or the items of an array in it."""
    indent = "  " * depth
    if not extents:
        # Bytes that a struct points to may have no NUL.
        give = "address" if kind.c_type == "char *" else kind.give
        yield f"{indent}if (!status) status = dso_give_{give}({result}, {value});"
        return
    size, i, items = extents[0], f"i{depth}", f"items{depth}"
    yield f"{indent}{{"
    yield f"{indent}  dso_any {items}[{size}];"
    yield f"{indent}  __builtin_memset({items}, 0, sizeof {items});"
    yield f"{indent}  for (int32_t {i} = 0; {i} < {size}; {i}++) {{"
    yield from _give_value(kind, extents[1:], f"&{items}[{i}]", f"{value}[{i}]", depth + 2)
    yield f"{indent}  }}"
    yield f"{indent}  status = dso_give_items({result}, {items}, {size}, status);"
    yield f"{indent}}}"
