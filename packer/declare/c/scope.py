"""The names that a C unit knows: typedefs, structs, enums, constants and functions.

One class, since the meaning of each name may need any other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

from .expression import Types, evaluate
from .parser import CSyntaxError, parse_declaration
from .text import Chunk, chunks_of, without_labels
from .tokens import RESERVED, STANDARD, TYPEOF
from .types import Array, CType, Declared, Function, Named, Pointer, Tagged, find_tag

KNOWN = {*RESERVED, "DLTensor", "dso_status"}
_TAG_NAME = re.compile(r"\b(struct|union|enum)\s+([A-Za-z_$][\w$]*)", re.ASCII)
_INNERMOST = re.compile(r"\([^()]*\)")
_WORDS = re.compile(r"[A-Za-z_$][\w$]*", re.ASCII)
_TAG = re.compile(r"\b(struct|union|enum)\b[^;{}()]*?\b([A-Za-z_$][\w$]*)\s*\{", re.ASCII)
_DEEPEST = 40
_DEFINE = re.compile(r"^#define ([A-Za-z_$][\w$]*)(?: (.*))?$", re.MULTILINE | re.ASCII)
_INTERNAL = re.compile(r"\b(?:__|_IO_)\w+", re.ASCII)
_MACROS = re.compile(r"^#(?:define|undef) [^\n]*", re.MULTILINE)


class Scope:
    """The types and functions of one unit.

    `text` returns the preprocessed text of the unit, and is called when a name is not a standard
    one. `code` is the source before that: the type of a function that it writes with standard names
    is read without the preprocessor. `is_open` is True if nothing tells the types of the unit: a
    pointer to an unknown type is a handle. In C++ (`is_cpp`) a plain name may be that of a struct.

    The text is divided into declarations, and each is parsed when one of its names is looked up. A
    declaration that cannot be parsed is unknown.
    """

    def __init__(
        self,
        text: Callable[[], str] | None = None,
        code: str | None = None,
        *,
        is_open: bool = True,
        is_cpp: bool = False,
    ) -> None:
        self._text = text
        self._code = code
        self.is_cpp = is_cpp
        self.is_open = is_open
        self._parsed: dict[int, list[Declared]] = {}

    @property
    def has_text(self) -> bool:
        """Return True if there is source or a header that tells its types."""
        return self._text is not None

    @cached_property
    def chunks(self) -> list[Chunk]:
        """The declarations of the unit, in order."""
        return list(chunks_of(_MACROS.sub("", self.text)))

    @cached_property
    def text(self) -> str:
        """The preprocessed text of the unit; empty without one."""
        return self._text() if self._text else ""

    @cached_property
    def _typedefs(self) -> dict[str, list[int]]:
        """The chunks whose typedef has a name among its words."""
        found: dict[str, list[int]] = {}
        for index, chunk in enumerate(self.chunks):
            if "typedef" in chunk.text[:40]:
                for word in set(_WORDS.findall(chunk.text)):
                    found.setdefault(word, []).append(index)
        return found

    @cached_property
    def _tags(self) -> dict[tuple[str, str], int]:
        return {
            (match[1], match[2]): index
            for index, chunk in enumerate(self.chunks)
            for match in _TAG.finditer(without_labels(chunk.text))
        }

    def declared(self, index: int) -> list[Declared]:
        """Parse one chunk; empty if it cannot be parsed."""
        if index not in self._parsed:
            self._parsed[index] = _declared(self.chunks[index])
        return self._parsed[index]

    def typedef(self, name: str) -> CType | None:
        """Return the type that a name stands for, or None."""
        if name in STANDARD:
            return Named(STANDARD[name])
        for index in self._typedefs.get(name, ()):
            for declared in self.declared(index):
                if declared.name == name and "typedef" in declared.storage:
                    return _with_alias(_aligned(declared), self.declared(index))
        return None

    def typedefs_of(self, type_: Tagged) -> Iterator[str]:
        """Yield the other names of a struct or union, and ``name *`` for a pointer to one."""
        for index in self._typedefs.get(type_.name, ()):
            for declared in self.declared(index):
                found, star = declared.type, ""
                if isinstance(found, Array) and self.extent(found.extent) == 1:
                    found = found.item
                elif isinstance(found, Pointer):
                    found, star = found.target, " *"
                other = self.resolved(found)
                is_it = isinstance(other, Tagged) and other.spelling == type_.spelling
                if is_it and declared.name != type_.name and "typedef" in declared.storage:
                    yield declared.name + star

    @cached_property
    def internal(self) -> set[str]:
        """The names in private headers of the C library, whose structs only the library reads."""
        texts = (chunk.text for chunk in self.chunks if "/bits/" in chunk.file)
        return {name for text in texts for name in _INTERNAL.findall(text)}

    @cached_property
    def macros(self) -> dict[str, str]:
        """The macros without parameters, by name, if the text has macros."""
        return dict(_DEFINE.findall(self.text))

    def has_typedef(self, name: str) -> bool:
        """Return True if the unit itself defines a type by this name."""
        return name in self._typedefs and self.typedef(name) is not None

    def has_unread(self, name: str) -> bool:
        """Return True for a type whose typedef is not read, such as a vector."""
        return name in self._typedefs and self.typedef(name) is None

    def tagged(self, type_: Tagged) -> Tagged:
        """Return a struct, union or enum with its body, if the unit has one."""
        if type_.members is not None or type_.constants or not type_.tag:
            return type_
        index = self._tags.get((type_.kind, type_.tag))
        if index is None:
            return type_
        own = (type_.kind, type_.tag)
        for declared in self.declared(index):
            found = find_tag(declared.type, lambda t: (t.kind, t.tag) == own and t.has_body)
            if found is not None:
                return found._replace(quals=type_.quals)
        return type_

    def local_tag(self, type_: CType) -> Tagged | None:
        """Return the struct, union or enum of a parameter that no other declaration can name."""
        if self.is_cpp or not self.has_text:
            return None
        return find_tag(type_, lambda t: t.has_body or (t.kind, t.tag) not in self._file_tags)

    @cached_property
    def _file_tags(self) -> set[tuple[str, str]]:
        """The tags that declarations name outside of parameters."""
        found: set[tuple[str, str]] = set()
        for chunk in self.chunks:
            text, count = without_labels(chunk.text), 1
            while count:
                text, count = _INNERMOST.subn(" ", text)
            found.update(_TAG_NAME.findall(text))
        return found

    def resolved(self, type_: CType) -> CType:
        """Follow typedefs, and add the body of a struct, union or enum; qualifiers are kept."""
        quals: tuple[str, ...] = ()
        alias = ""
        for _ in range(_DEEPEST):
            if not isinstance(type_, Named) or type_.words[0] in KNOWN:
                break
            target = self._named(type_.words[0])
            if target is None:
                break
            alias = type_.words[0]
            quals += type_.quals
            type_ = target
        if quals and not isinstance(type_, (Array, Function)):
            type_ = type_._replace(quals=tuple(dict.fromkeys((*type_.quals, *quals))))
        if isinstance(type_, Tagged):
            return self.tagged(type_ if type_.name else type_._replace(alias=alias))
        return type_

    def _named(self, name: str) -> CType | None:
        """Return the type that a word names."""
        if name.startswith(TYPEOF):
            from .type_of import type_of  # which uses this class

            return type_of(name[len(TYPEOF) : -1], self)
        return self.typedef(name) or self._class(name)

    def object_type(self, name: str) -> CType:
        """Return the type of a variable or a function; raise LookupError if there is none."""
        pattern = re.compile(rf"\b{re.escape(name)}\b")
        for index, chunk in enumerate(self.chunks):
            for declared in self.declared(index) if pattern.search(chunk.text) else ():
                if declared.name == name and "typedef" not in declared.storage:
                    return declared.type
        raise LookupError(name)

    def _class(self, name: str) -> Tagged | None:
        """Return the struct or enum that a plain name means in C++."""
        if not self.is_cpp or not self._text:
            return None
        kinds = (kind for kind in ("struct", "enum", "union") if (kind, name) in self._tags)
        return next((Tagged(kind, name) for kind in kinds), None)

    def function(self, name: str) -> Function | None:
        """Return the type of a function that the unit defines or declares, or None."""
        if self._code is not None:
            found = self._plain_function(name)
            if found is not None:
                return found
        if self._text is None or (self._code is not None and not self._may_declare(name)):
            return None
        types = [self.resolved(declared.type) for declared in self._heads(name, self.chunks)]
        made = [type_ for type_ in types if isinstance(type_, Function)]
        return made[-1] if made else None

    def _plain_function(self, name: str) -> Function | None:
        """Return the type that the code itself writes with standard names, in one way only."""
        made = {
            d.type for d in self._heads(name, self._code_chunks) if isinstance(d.type, Function)
        }
        return made.pop() if len(made) == 1 and is_plain(next(iter(made))) else None

    @cached_property
    def _code_chunks(self) -> list[Chunk]:
        return list(chunks_of(self._code or ""))

    def _may_declare(self, name: str) -> bool:
        """Return True if the preprocessed text may declare a function that the code does not."""
        assert self._code is not None
        return bool(re.search(rf"\b{re.escape(name)}\b|#\s*include\s*\"", self._code))

    def _heads(self, name: str, chunks: Sequence[Chunk]) -> Iterator[Declared]:
        """Yield the declarations of a function: f(int), (f)(int), or by a typedef as in T f."""
        pattern = re.compile(rf"\b{re.escape(name)}[\s)]*(?:\(|$)")
        for chunk in chunks:
            if pattern.search(chunk.text):
                for declared in _declared(chunk):
                    if declared.name == name and "typedef" not in declared.storage:
                        yield declared

    def constant(self, name: str) -> int | None:
        """Return the value of an enum's constant, or None."""
        return self._constants.get(name) if name in self._words_of_enums else None

    @cached_property
    def _words_of_enums(self) -> set[str]:
        """The words of all enums: most names are in none, and no enum is parsed for these."""
        texts = (chunk.text for chunk in self.chunks if "enum" in chunk.text)
        return {word for text in texts for word in _WORDS.findall(text)}

    @cached_property
    def _constants(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for index, chunk in enumerate(self.chunks):
            if "enum" not in chunk.text:
                continue
            for declared in self.declared(index):
                if isinstance(declared.type, Tagged):
                    found.update(enum_values(declared.type, found.get, self.type_code))
        return found

    def type_code(self, tokens: Sequence[str]) -> str:
        """Return the code of the type in a cast or a sizeof; empty if the tokens name none."""
        from .type_code import type_code  # which uses this class

        return type_code(tokens, self)

    def extent(self, tokens: tuple[str, ...]) -> int | None:
        """Return the value of an array's extent, or None."""
        return evaluate(tokens, self._constant_of_text, self.type_code)

    def _constant_of_text(self, name: str) -> int | None:
        return self.constant(name) if self._text else None


def parsed(chunk: Chunk) -> list[Declared]:
    """Parse a chunk; raise CSyntaxError if it cannot be parsed."""
    text = re.sub(r'^extern\s*"C"\s*', "extern ", chunk.text)
    return parse_declaration(text, chunk.attributes)


def _declared(chunk: Chunk) -> list[Declared]:
    try:
        return parsed(chunk)
    except CSyntaxError:
        return []


def _with_alias(type_: CType | None, together: Sequence[Declared]) -> CType | None:
    """Name the target of a pointer that has no tag by a typedef of the same declaration."""
    if not isinstance(type_, Pointer) or not isinstance(type_.target, Tagged) or type_.target.tag:
        return type_
    plain = type_.target._replace(quals=())
    names = [d.name for d in together if isinstance(d.type, Tagged) and d.type == plain]
    return type_._replace(target=type_.target._replace(alias=names[0])) if names else type_


def _aligned(declared: Declared) -> CType | None:
    """Return the type of a typedef; only a struct can tell that its alignment is another."""
    if "lign" not in declared.attributes:
        return declared.type
    if not isinstance(declared.type, Tagged):
        return None
    attributes = f"{declared.type.attributes} {declared.attributes}"
    return declared.type._replace(attributes=attributes)


def is_plain(type_: CType) -> bool:
    """Return True if a type is written with keywords and standard names alone."""
    if isinstance(type_, Pointer):
        return is_plain(type_.target)
    if isinstance(type_, Array):
        return is_plain(type_.item)
    if isinstance(type_, Function):
        return all(map(is_plain, (type_.result, *(p.type for p in type_.parameters))))
    return isinstance(type_, Named) and (type_.words[0] in KNOWN or type_.words[0] in STANDARD)


def enum_values(
    type_: Tagged,
    constant: Callable[[str], int | None] = lambda _: None,
    types: Types = lambda _: "",
) -> dict[str, int]:
    """Return the constants of an enum; those after one that cannot be computed are left out."""
    found: dict[str, int] = {}
    value: int | None = -1
    for name, tokens in type_.constants:
        if tokens:
            value = evaluate(tokens, lambda word: found.get(word, constant(word)), types)
        elif value is not None:
            value += 1
        if value is None:
            break
        found[name] = value
    return found
