"""C types as trees, and their text."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Named(NamedTuple):
    """A type by its words: ``unsigned long``, or the name of a typedef."""

    words: tuple[str, ...]
    quals: tuple[str, ...] = ()


class Tagged(NamedTuple):
    """A struct, union or enum."""

    kind: str
    tag: str
    quals: tuple[str, ...] = ()
    # The fields of a struct or union; None without a body.
    members: tuple[Declared, ...] | None = None
    # The names of an enum, each with the tokens of its value.
    constants: tuple[tuple[str, tuple[str, ...]], ...] = ()
    attributes: str = ""  # the text of its attributes
    alias: str = ""  # the typedef by which a type without a tag is known

    @property
    def name(self) -> str:
        """The tag, or the typedef's name."""
        return self.tag or self.alias

    @property
    def spelling(self) -> str:
        """The type in C."""
        return f"{self.kind} {self.tag}" if self.tag else self.alias

    @property
    def has_body(self) -> bool:
        """Return True if the fields or the names of an enum are known."""
        return self.members is not None or bool(self.constants)


class Pointer(NamedTuple):
    """A pointer."""

    target: CType
    quals: tuple[str, ...] = ()


class Array(NamedTuple):
    """An array; the extent as tokens, of which there may be none."""

    item: CType
    extent: tuple[str, ...] = ()


class Function(NamedTuple):
    """A function type; in C++ it may promise to throw nothing."""

    result: CType
    parameters: tuple[Declared, ...]
    is_variadic: bool = False
    is_noexcept: bool = False


CType = Named | Tagged | Pointer | Array | Function


class Declared(NamedTuple):
    """One declared name."""

    name: str
    type: CType
    storage: frozenset[str] = frozenset()  # ``static``, ``typedef``, ``inline`` and others
    bits: tuple[str, ...] = ()  # the tokens of a bit-field's width; none for other members
    attributes: str = ""  # the text of its attributes


def find_tag(type_: CType, is_sought: Callable[[Tagged], bool]) -> Tagged | None:
    """Return the first struct, union or enum inside a type of which `is_sought` is true."""
    inner: tuple[CType, ...] = ()
    if isinstance(type_, Tagged):
        if is_sought(type_):
            return type_
        inner = tuple(member.type for member in type_.members or ())
    elif isinstance(type_, Function):
        inner = (type_.result, *(p.type for p in type_.parameters))
    elif not isinstance(type_, Named):
        inner = (type_.target if isinstance(type_, Pointer) else type_.item,)
    return next((found for t in inner if (found := find_tag(t, is_sought))), None)


def render(type_: CType, name: str = "", names: bool = True) -> str:
    """Write a type as C text, around a name; parameters with their names."""
    if isinstance(type_, Pointer):
        inner = " ".join(["*", *type_.quals]).replace("* ", "*", 1) + (
            f" {name}" if type_.quals and name else name
        )
        inside = isinstance(type_.target, (Array, Function))
        return render(type_.target, f"({inner})" if inside else inner, names)
    if isinstance(type_, Array):
        return render(type_.item, f"{name}[{' '.join(type_.extent)}]", names)
    if isinstance(type_, Function):
        text = f"{name}({parameters_text(type_, names)})"
        return render(type_.result, text, names).replace(" (", "(", 1 if not name else 0)
    text = " ".join(type_.words) if isinstance(type_, Named) else type_.spelling
    return f"{' '.join([*type_.quals, text])} {name}".rstrip()


def parameters_text(function: Function, names: bool = True) -> str:
    """Write the parameters of a function type."""
    texts = [render(p.type, p.name if names else "", names) for p in function.parameters]
    return ", ".join([*texts, *(["..."] if function.is_variadic else [])])


def parameter_text(declared: Declared, code: str) -> str:
    """Write the type of a parameter for messages: an array of unknown extent is a pointer."""
    type_ = declared.type
    if isinstance(type_, Array) and ("[" not in code or "[]" in code):
        type_ = Pointer(type_.item)
    if isinstance(type_, Pointer):
        type_ = type_._replace(quals=())
    return render(type_)
