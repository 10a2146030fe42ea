"""The libraries that are mutated: packed ones of both dialects, and plain ones of every linker."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import packer
import runtime
from runtime.modules.vm import VMExecutable
from runtime.modules.vm import load as load_executable
from runtime.serial.stream import Reader

sys.path.append(str(Path(__file__).parent.parent.parent))  # last: runtime is the installed one
from tests.support.vm_assembler import TWICE, TWICE_SOURCE, doubling

SOURCE = (
    TWICE_SOURCE
    + """
#include <math.h>
#include <stdlib.h>
extern int absent(int) __attribute__((weak));
static _Thread_local int64_t counter = 3;
_Thread_local int64_t shared_counter;
static int64_t ready, *pointer = &ready;
const char *const names[] = {"first", "second"};
long (*const calls[])(long) = {labs, labs};
__attribute__((constructor)) static void up(void) { ready = 1; shared_counter = counter; }
__attribute__((constructor)) static void up_again(void) { *pointer += 1; }
__attribute__((destructor)) static void down(void) { ready = 0; }
static int64_t one(int64_t x) { return x + 1; }
static int64_t (*pick(void))(int64_t) { return one; }
int64_t chosen(int64_t x) __attribute__((ifunc("pick")));
int64_t count(int64_t n) { counter += n; return absent ? absent(1) : chosen(counter) + ready; }
double wave(double x) { return sin(x) + names[ready != 0][0] + (double)calls[0](-3); }
"""
)
FUNCTIONS = {
    "twice": TWICE,
    "count": "int64_t(int64_t n)",
    "wave": "double(double x)",
    "chosen": "int64_t(int64_t x)",
}
VERSIONS = "ONE { global: count; wave; }; TWO { global: *; } ONE;"


def weights() -> bytes:
    """A file of two tensors."""
    tensors = {
        "w": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]},
        "b": {"dtype": "I8", "shape": [4], "data_offsets": [16, 20]},
    }
    header = json.dumps(tensors).encode()
    return len(header).to_bytes(8, "little") + header + bytes(range(20))


def executable() -> VMExecutable:
    """Bytecode that calls the host code."""
    return load_executable(Reader(doubling().payload()))


def tree(root: runtime.Module) -> runtime.Module:
    """Import one module of many kinds."""
    array = runtime.Tensor(bytes(24), (2, 3), "float32")
    info = runtime.FunctionInfo("k", ["handle", "int32"], ["blockIdx.x", "threadIdx.x"])
    shader = runtime.Shader(3, b"\x03\x02\x23\x07" * 4)
    constants = runtime.ConstLoaderModule({"x": array, "y": array}, {"f": ["x", "y"]})
    imports = [
        constants,
        runtime.DeviceModule("cuda", "// ptx", "ptx", [info]),
        runtime.DeviceModule("vulkan", {"k": shader}, "spirv", [info]),
        runtime.GraphExecutorFactory("{}", {"p": array}),
        runtime.SafetensorsModule(weights()),
        runtime.JSONRuntimeModule("dnnl_json", "sub", '{"nodes":[]}', ["c"]),
    ]
    for module in imports:
        root.import_module(module)
    imports[0].import_module(imports[1])
    return root


def host() -> packer.CSourceModule:
    """The host code, with its declarations."""
    return packer.CSourceModule(SOURCE, functions=FUNCTIONS)


def machine() -> VMExecutable:
    """Bytecode over host code."""
    root = executable()
    root.import_module(host())
    return root


def make_libraries(folder: Path) -> list[Path]:
    """Export and compile all of them into a folder."""
    made = []

    def export(name: str, root: runtime.Module, dialect: str, *options: str) -> None:
        path = folder / f"{name}.so"
        packer.export_library(root, path, format=dialect, options=options)  # type: ignore[arg-type]
        made.append(path)

    math = "-lm"
    export("tvm", tree(host()), "tvm", math)
    export("tvm_ffi", tree(host()), "tvm-ffi", math, "-Wl,-z,pack-relative-relocs")
    export("sysv", tree(host()), "tvm", math, "-Wl,--hash-style=sysv,-z,now")
    export("both", tree(host()), "tvm", math, "-Wl,--hash-style=both,-z,norelro", "-s")
    export("bytecode", machine(), "tvm-ffi", math, "-Wl,-z,noseparate-code")
    export("no_host", tree(runtime.MetadataModule()), "tvm")
    export("no_host_ffi", tree(executable()), "tvm-ffi")
    for linker in ("gold", "lld", "mold"):
        if shutil.which(f"ld.{linker}") or shutil.which(linker):
            export(linker, tree(host()), "tvm", math, f"-fuse-ld={linker}")
    return made + _plain(folder)


def _plain(folder: Path) -> list[Path]:
    source, script = folder / "plain.c", folder / "plain.map"
    source.write_text("#include <stdint.h>\n" + SOURCE)
    script.write_text(VERSIONS)
    rows = {
        "versions": [f"-Wl,--version-script={script}", "-mtls-dialect=gnu2"],
        "initial": ["-ftls-model=initial-exec", "-Wl,--hash-style=both"],
        "small": ["-s", "-Wl,-z,max-page-size=4096,-z,noseparate-code", "-Wl,--hash-style=sysv"],
    }
    made = []
    for name, options in rows.items():
        path = folder / f"{name}.so"
        command = ["cc", "-O1", "-shared", "-fPIC", str(source), "-o", str(path), *options, "-lm"]
        if subprocess.run(command, check=False).returncode == 0:
            made.append(path)
    return made
