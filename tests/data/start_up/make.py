"""Make the libraries of this folder again: python make.py FOLDER.

Each is a library of one variable, to which a compiler and a linker added start-up code. Libraries
with the same instructions as another one are left out. index.json says how each was made.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path

SOURCE = "int value = 1;\n"
ATOMIC = "int count; int one(void) { return __atomic_fetch_add(&count, 1, 5); }\n"
LINKERS = ("bfd", "gold", "lld", "mold")
SMALL = ("-shared", "-fPIC", "-O2", "-s", "-Wl,-z,max-page-size=4096", "-Wl,--build-id=none")
X86 = (
    (),
    ("-fcf-protection=full", "-Wl,-z,ibtplt"),
    ("-Wl,-z,now",),
    ("-Wl,-z,pack-relative-relocs",),
    ("-static-libgcc",),
)
AARCH64 = (
    (),
    ("-mbranch-protection=standard",),
    ("-mbranch-protection=standard", "-Wl,-z,force-bti"),
    ("-Wl,-z,force-bti", "-Wl,-z,pac-plt"),
)
RISCV = ((), ("-mno-relax", "-Wl,--no-relax"))
COMPILERS = (
    ("gcc", X86),
    ("clang", X86),
    ("clang -rtlib=compiler-rt", ((),)),
    ("musl-gcc", X86),
    ("aarch64-linux-gnu-gcc", AARCH64),
    ("clang --target=aarch64-linux-gnu", AARCH64),
    ("riscv64-linux-gnu-gcc", RISCV),
    ("clang --target=riscv64-linux-gnu", RISCV),
)


def commands() -> Iterator[tuple[list[str], str]]:
    """Yield each way to make a library, and its source."""
    for compiler, options in COMPILERS:
        for option, linker in product(options, LINKERS):
            words = [*compiler.split(), *option, f"-fuse-ld={linker}"]
            yield words, SOURCE
    yield ["aarch64-linux-gnu-gcc", "-moutline-atomics"], ATOMIC


def start_up_code(path: Path) -> str:
    """Return the instructions without addresses."""
    shown = subprocess.run(
        ["llvm-objdump", "-d", "--no-show-raw-insn", "--no-leading-addr", path],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    lines = [line.split("#")[0].split("<")[0].split() for line in shown.splitlines()[3:]]
    return "\n".join(" ".join(word for word in line if "0x" not in word) for line in lines)


def main(folder: Path) -> None:
    """Make all libraries, and keep one for each start-up code."""
    seen: set[str] = set()
    made: dict[str, str] = {}
    path = folder / "new.so"
    for words, source in commands():
        (folder / "a.c").write_text(source)
        command = [*words, *SMALL]
        done = subprocess.run([*command, "a.c", "-o", "new.so"], cwd=folder, capture_output=True)
        code = start_up_code(path) if done.returncode == 0 else None
        if code is not None and code not in seen:
            seen.add(code)
            made[f"{len(made):02}.so"] = " ".join(command)
            path.rename(folder / [*made][-1])
    path.unlink(missing_ok=True)
    (folder / "a.c").unlink()
    (folder / "index.json").write_text(json.dumps(made, indent=2) + "\n")


main(Path(sys.argv[1]))
