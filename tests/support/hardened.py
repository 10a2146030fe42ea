"""Libraries with one offence each, made by real compilers and linkers, and the rules on a file."""

from __future__ import annotations

import subprocess
from pathlib import Path

from runtime.trust.hardening.rules import Rules, violations

from . import needs

PLAIN = "int twice(int x) { return 2 * x; }\n"
MARK = (
    "#include <stdio.h>\n"
    'static void leave_a_mark(void) { FILE *f = fopen(MARK, "w"); if (f) fclose(f); }\n'
)
CONSTRUCTOR = f"{MARK}__attribute__((constructor)) static void hello(void) {{ leave_a_mark(); }}\n"
DESTRUCTOR = (
    "static volatile int count;\n__attribute__((destructor)) static void bye(void) { count = 1; }\n"
)
RESOLVER = (
    f"{MARK}static int one(void) {{ return 1; }}\n"
    "static int (*choose(void))(void) { leave_a_mark(); return one; }\n"
    'int chosen(void) __attribute__((ifunc("choose")));\n'
    "int use(void) { return chosen(); }\n"
)

# The source and options of a library, by the rule that refuses it.
OFFENCES: dict[str, tuple[str, tuple[str, ...]]] = {
    "constructors": (CONSTRUCTOR + PLAIN, ()),
    "destructors": (DESTRUCTOR + PLAIN, ()),
    "resolvers": (RESOLVER + PLAIN, ()),
    "stack": (PLAIN, ("-Wl,-z,execstack",)),
    "text relocations": (
        f'{PLAIN}int x; __asm__(".text; .quad x");\n',
        ("-Wl,-z,notext",),
    ),
    "segments": (f'{PLAIN}__asm__(".section both, \\"awx\\"; .quad 1");\n', ()),
    "search paths": (PLAIN, ("-Wl,-rpath,/opt/lib",)),
    "needed libraries": (PLAIN, ("-Wl,--no-as-needed", "-lz")),
    "start-up names": (f"{PLAIN}void __gmon_start__(void) {{}}\n", ("-nostartfiles",)),
}


def compiled(
    source: str, output: Path, *options: str, compiler: str = "gcc", suffix: str = "c"
) -> Path:
    """Compile and link a library as a user would."""
    if "-lz" in options:
        needs.header("zlib.h", "zlib1g-dev")
    text = output.with_suffix(f".{suffix}")
    text.write_text(source)
    mark = f'-DMARK="{output.with_suffix(".mark")}"'
    words = [compiler, "-shared", "-fPIC", "-O2", mark, text, "-o", output, *options]
    subprocess.run(words, check=True, capture_output=True)
    return output


def refused(path: Path, rules: Rules = Rules()) -> list[tuple[str, str]]:  # noqa: B008
    """The rules that refuse a file, and their messages."""
    found = violations(memoryview(path.read_bytes()), rules)
    return [(violation.rule, violation.text) for violation in found]
