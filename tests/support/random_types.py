"""Random types of C, nested to depth 8: packer's and runtime's view of them beside the compiler's.

A unit has structs and unions of numbers, bit-fields, enums, pointers and arrays, and a C function
that lists their sizes, offsets and values. `compare` reads the same through handles. `call_wrongly`
passes random objects to functions that ignore their arguments.
"""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import packer
import runtime

DEPTH = 8
_INTEGERS = (
    *("signed char", "unsigned char", "short", "unsigned short", "int", "unsigned"),
    *("long", "unsigned long", "long long", "enum color", "uint16_t", "size_t"),
)
_SCALARS = (*_INTEGERS, "float", "double", "_Bool", "void *", "int *", "struct hidden *")
_PRELUDE = """
#include <stddef.h>
#include <stdint.h>
enum color { RED = -1, GREEN, BLUE = 70000 };
struct hidden;
"""


class Leaf(NamedTuple):
    """One value: its path in C and in Python, and how it is compared."""

    path: str
    steps: tuple[Any, ...]
    kind: str  # ``integer``, ``float``, ``bool`` or ``pointer``
    is_bits: bool


class Unit:
    """The types of one source; `count` is the number of types, nested ones included."""

    def __init__(self, seed: int, tops: int = 12) -> None:
        self.random = random.Random(seed)
        self.count = 0
        self.leaves: list[list[Leaf]] = []
        self.parts: list[list[tuple[str, tuple[Any, ...]]]] = []
        self.lines = [self._top(i) for i in range(tops)]

    def _top(self, index: int) -> str:
        self.leaves.append([])
        self.parts.append([])
        return f"{self._body('struct', f'top{index}', '', (), 1)};"

    def _body(self, word: str, tag: str, path: str, steps: tuple[Any, ...], depth: int) -> str:
        """Write a struct or union, and note its members."""
        self.count += 1
        pack = self.random.choice(["__attribute__((packed)) ", *[""] * 7]) if depth > 1 else ""
        members = [
            self._member(f"m{i}", path, steps, depth, bool(pack))
            for i in range(self.random.randint(1, 5))
        ]
        return f"{word} {pack}{tag} {{ {' '.join(members)} }}"

    def _member(
        self, name: str, path: str, steps: tuple[Any, ...], depth: int, is_packed: bool
    ) -> str:
        pick, whole = self.random.random(), f"{path}.{name}" if path else name
        extents = [self.random.randint(1, 3) for _ in range(self.random.choice([0, 0, 0, 1, 2]))]
        suffix = "".join(f"[{extent}]" for extent in extents)
        place = [0] * len(extents)
        at = whole + "".join(f"[{i}]" for i in place)
        own = (*steps, name, *place)
        self.count += bool(extents)
        if pick < 0.35 and depth < DEPTH:
            tag = f"tag{self.count}" if self.random.random() < 0.5 else ""
            self.parts[-1].append((at, own))
            word = self.random.choice(["struct", "struct", "union"])
            return f"{self._body(word, tag, at, own, depth + 1)} {name}{suffix};"
        if pick < 0.5 and not is_packed:
            type_ = self.random.choice(["int", "unsigned", "long", "unsigned char", "short"])
            bits = {"long": 64, "unsigned char": 8, "short": 16}.get(type_, 32)
            self.leaves[-1].append(Leaf(whole, (*steps, name), "integer", True))
            return f"{type_} {name} : {self.random.randint(1, bits)};"
        self.count += 1
        type_ = self.random.choice(_SCALARS)
        kind = {"float": "float", "double": "float", "_Bool": "bool"}.get(type_, "integer")
        self.leaves[-1].append(Leaf(at, own, "pointer" if "*" in type_ else kind, False))
        return f"{type_} {name}{suffix};"

    def source(self) -> str:
        """Return the C text."""
        made = [_PRELUDE, *self.lines]
        for i, (leaves, parts) in enumerate(zip(self.leaves, self.parts, strict=True)):
            sizes = [f"sizeof(struct top{i})"]
            for path, _ in parts:
                sizes += [
                    f"offsetof(struct top{i}, {path})",
                    f"sizeof(((struct top{i} *)0)->{path})",
                ]
            made.append(f"void layout{i}(uint64_t *out, const struct top{i} *p) {{ (void)p;")
            made += [f"  out[{k}] = {size};" for k, size in enumerate(sizes)]
            made.append(
                f"}}\nvoid values{i}(const struct top{i} *p, uint64_t *out, double *floats) {{"
            )
            for k, leaf in enumerate(leaves):
                target = f"floats[{k}] = " if leaf.kind == "float" else f"out[{k}] = (uint64_t)"
                made.append(f"  {target}p->{leaf.path};")
            made.append("  (void)p, (void)out, (void)floats;\n}")
            made.append(f"struct top{i} turn{i}(struct top{i} x) {{ return x; }}")
            made.append(f"struct top{i} (*get{i}(void))(struct top{i}) {{ return turn{i}; }}")
        return "\n".join(made) + "\n"


def load(unit: Unit, folder: Path) -> runtime.Module:
    """Export a unit, and load it."""
    host = packer.CSourceModule(unit.source(), functions={"*": "auto"})
    assert not host.left_out, host.left_out
    return runtime.load(packer.export_library(host, folder / "types.so"))


def compare(unit: Unit, model: Any) -> int:
    """Compare every size, offset and value; return how many there were."""
    number = 0
    for i, (leaves, parts) in enumerate(zip(unit.leaves, unit.parts, strict=True)):
        handle = runtime.new(model, f"struct top{i}")
        memory = memoryview(handle).cast("B")
        found = np.zeros(1 + 2 * len(parts), np.uint64)
        model[f"layout{i}"](found, handle)
        own = [memory.nbytes]
        for _, steps in parts:
            part = reach(handle, steps)
            own += [part.address - handle.address, memoryview(part).nbytes]
        assert own == found.tolist(), (i, own, found.tolist())
        memory[:] = unit.random.randbytes(memory.nbytes)
        for leaf in leaves:
            if leaf.kind == "bool":
                reach(handle, leaf.steps[:-1])[leaf.steps[-1]] = bool(unit.random.getrandbits(1))
        # Of overlapping members only C's view after the last write counts.
        integers, floats = np.zeros(len(leaves) + 1, np.uint64), np.zeros(len(leaves) + 1)
        model[f"values{i}"](handle, integers, floats)
        for leaf, integer, real in zip(leaves, integers.tolist(), floats, strict=False):
            value = reach(handle, leaf.steps)
            assert is_same(leaf, value, integer, float(real)), (i, leaf, value, integer, real)
        number += len(own) + len(leaves) + compare_values(model, i, handle, leaves)
    return number


def compare_values(model: Any, index: int, handle: Any, leaves: list[Leaf]) -> int:
    """Pass a struct by value, to a function and through a pointer; compare what returns."""
    returned = [model[f"turn{index}"](handle)]
    try:
        returned.append(model[f"get{index}"]()(handle))
    except TypeError as error:  # as packed ones are
        assert "aligned" in str(error)
    found = [item for item in returned if isinstance(item, runtime.Handle)]
    for item in found:
        for leaf in leaves:
            given, made = reach(handle, leaf.steps), reach(item, leaf.steps)
            assert str(getattr(given, "address", given)) == str(getattr(made, "address", made))
    return len(found) * len(leaves)


def reach(handle: Any, steps: tuple[Any, ...]) -> Any:
    """Follow the names and indices of a path."""
    for step in steps:
        handle = handle[step]
    return handle


def is_same(leaf: Leaf, value: Any, integer: int, real: float) -> bool:
    """Return True if Python's value is C's."""
    if leaf.kind == "float":
        return value == real or (math.isnan(value) and math.isnan(real))
    if leaf.kind == "pointer":
        return integer == (value.address if value is not None else 0)
    if leaf.kind == "bool":
        return True  # an overlapping write may have stored any byte
    return bool(value % 2**64 == integer)


_TYPES = (
    *("int", "unsigned char", "uint64_t", "double", "float", "_Bool", "char", "short"),
    *("const char *", "char *", "void *", "const void *", "int *", "const double *", "uint8_t *"),
    *("char **", "int **", "const uint8_t *const *", "void **", "struct top0 *", "struct top1"),
    *("struct top0 **", "struct hidden *", "int (*)(int)", "void (*)(void *, int)", "enum color"),
    *("double (*)[2]", "double _Complex", "float _Complex *", "_Atomic(long) *", "struct small"),
)


def functions(unit: Unit, count: int) -> str:
    """Return functions of random types that ignore their arguments."""
    text = "struct small { int a; const char *name; double *values; int (*f)(int); short s[2]; };\n"
    for i in range(count):
        types = [unit.random.choice(_TYPES) for _ in range(unit.random.randint(1, 4))]
        names = [
            t.replace("(*)", f"(*a{k})") if "(*)" in t else f"{t} a{k}" for k, t in enumerate(types)
        ]
        text += f"int take{i}({', '.join(names)}) {{ return {i}; }}\n"
    return f"{text}int use(struct top1 *p) {{ return !p; }}\n"


def call_wrongly(unit: Unit, folder: Path, count: int) -> tuple[int, int]:
    """Call functions with random objects; return how many calls were taken, and refused."""
    text = f"{_PRELUDE}{unit.lines[0]}\n{unit.lines[1]}\n{functions(unit, 60)}"
    host = packer.CSourceModule(text, functions={"*": "auto"})
    model: Any = runtime.load(packer.export_library(host, folder / "wrong.so"))
    names = [d.name for d in host.functions if d.name.startswith("take")]
    other = runtime.new(model, "struct top1")
    closed = runtime.new(model, "struct top0")
    closed.close()
    objects = [
        *(None, 0, 1, -1, 2**31, 2**63, 2**64, -(2**70), 1.5, math.inf, math.nan, 1j, True, "text"),
        *(
            "",
            "a\0b",
            "\ud800",
            b"bytes",
            b"",
            bytearray(8),
            memoryview(b"abc"),
            [],
            (),
            {},
            {"a": 1},
        ),
        *([None], [1, "x"], ("a", None), [[1]], {"m0": "x"}, object(), print, len, int, lambda: 0),
        *(np.zeros(3), np.zeros((2, 2), np.uint8), np.zeros(0, np.int32), np.zeros(4, complex)),
        *(
            np.zeros(4)[::2],
            np.arange(6, dtype=">i4"),
            np.array("text"),
            np.float32(1),
            np.int8(-1),
        ),
        *(
            np.zeros(2, np.longdouble),
            np.zeros(2, object),
            [np.zeros(2)],
            [np.zeros(2, np.int32)] * 2,
        ),
        *(runtime.new(model, "struct top0"), other, closed, runtime.new(model, "int *[2]")),
        *(runtime.new(model, "void *"), runtime.new(model, "char[4]"), [other], {"values": other}),
        *((1, "n", np.zeros(2), None, (1, 2)), {"a": 2**40}, {"s": [1, 2]}, {"f": print}, model),
    ]
    taken = refused = 0
    for _ in range(count):
        name = unit.random.choice(names)
        given = [unit.random.choice(objects) for _ in range(unit.random.randint(0, 5))]
        try:
            found = model[name](*given)  # beside what is written through a pointer
            assert (found[0] if isinstance(found, tuple) else found) == int(name[4:])
            taken += 1
        except (TypeError, ValueError, OverflowError, AttributeError, LookupError) as error:
            assert str(error)
            refused += 1
    return taken, refused
