"""Models for static linking, and the programs that link them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import packer
import runtime

from .compile import INCLUDE
from .process import run_python

REGISTER = "extern int TVMBackendRegisterSystemLibSymbol(const char *, void *);\n"
MAIN = """
#define DSO_SYSTEM_LIB_IMPLEMENTATION
#include "dso_packer_system_lib.h"

static void call(const char *prefix, dso_any first) {
  dso_any result = dso_none(), args[2];
  args[0] = first, args[1] = dso_int(2);
  if (dso_system_lib_call(prefix, "add", &result, args, 2))
    printf("%s\\n", dso_system_lib_error());
  else
    printf("%lld\\n", (long long)result.v_int64);
}

int main(void) {
  call("net1_", dso_int(40));
  call("net2_", dso_int(40));
  call("net3_", dso_int(40));
  call("net1_", dso_string("x"));
  return 0;
}
"""
PRINTED = [
    "42",
    "82",
    "FunctionNotFoundError: no function 'net3_add' and no 'add' is linked into this program; link "
    "all members of an archive (-Wl,--whole-archive)",
    "TypeError: add: argument 1 'a' (long): expected an int, found str; declared as "
    "long add(long a, long b)",
]


def tree(factor: int, payload: bytes = b"") -> packer.CSourceModule:
    """A model; all of them define the same names, and mean different things by them."""
    root = packer.CSourceModule(
        f"long scale(long a) {{ return {factor} * a; }}\nlong counter = {factor};\n"
        "long add(long a, long b) { return scale(a) + b; }",
        functions={"add": "long(long a, long b)"},
    )
    data = payload or b"payload %d" % factor
    root.import_module(runtime.DeviceModule("cuda", data, "ptx", []))
    return root


def model(folder: Path, number: int, suffix: str = "o", **options) -> Path:
    """A model with a separate prefix."""
    return packer.export_library(
        options.pop("root", None) or tree(number),
        folder / f"net{number}.{suffix}",
        system_lib=True,
        c_symbol_prefix=f"net{number}_",
        **options,
    )


def linked(folder: Path, *options: str | Path, compiler: str = "cc -std=c99") -> list[str]:
    """Return the output of the C program that was linked with these."""
    (folder / "main.c").write_text(MAIN)
    warnings = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror"]
    command = [*compiler.split(), *warnings, f"-I{INCLUDE}", "-c", "main.c"]
    subprocess.run(command, cwd=folder, check=True)
    subprocess.run(["cc", "main.o", *options, "-o", "main"], cwd=folder, check=True)
    done = subprocess.run([folder / "main"], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.splitlines()


def beside_python(library: Path, expression: str, prefix: str = "net1_"):
    """Return an expression of the module ``m``, in a fresh process that loaded the library."""
    code = (
        "import json, runtime, sys\n"
        "runtime.load(sys.argv[1]); m = runtime.system_lib(sys.argv[2])\n"
        f"print(json.dumps({expression}))"
    )
    return run_python(code, str(library), prefix)
