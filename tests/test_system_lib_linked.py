"""Static linking: models in C programs, on this machine and on others."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import packer

from .support import needs
from .support.compile import INCLUDE
from .support.paths import DOCS
from .support.system_models import MAIN, PRINTED, REGISTER, beside_python, linked, model, tree


@pytest.mark.parametrize("embed", ["c", "llvm"])
@pytest.mark.parametrize("compiler", ["cc -std=c99", "g++ -xc++ -std=c++11"])
def test_two_models_in_one_c_program(embed, compiler, tmp_path) -> None:
    """Both are called; neither sees the other's functions, variables or blob."""
    models = [model(tmp_path, number, build=packer.Build(embed=embed)) for number in (1, 2)]
    assert linked(tmp_path, *models, compiler=compiler) == PRINTED


def test_archives_are_linked_as_a_whole(tmp_path) -> None:
    """A linker picks referenced objects; nothing references a model that registers itself."""
    models = [model(tmp_path, number, "a") for number in (1, 2)]
    whole = ["-Wl,--whole-archive", *models, "-Wl,--no-whole-archive"]
    assert linked(tmp_path, *whole) == PRINTED


def test_models_share_no_global_symbol(tmp_path) -> None:
    """Entry, context symbols, and functions of the same name in both models are not shared."""

    def defined(path: Path) -> set[str]:
        lines = subprocess.check_output(["nm", "-g", "--defined-only", path], text=True)
        return {line.split()[-1] for line in lines.splitlines()}

    first, second = (defined(model(tmp_path, number, entry="add")) for number in (1, 2))
    assert not first & second
    assert {
        *("net1_add", "net1_scale", "net1_counter", "__tvm_ffi_net1_add", "__packer_fn_net1_add"),
        *("net1___tvm_main__", "__tvm_ffi_net1_main", "net1___tvm_dev_mblob"),
        *("net1___packer_manifest", "net1___packer_checksums"),
        "net1___TVMFFIErrorSetRaisedFromCStr",
    } == first


@pytest.mark.parametrize("suffix", ["o", "a", "tar", "so"])
def test_models_of_the_other_dialect(suffix, tmp_path) -> None:
    """Metadata has the name that tvm_ffi looks for: the prefix, then the name without it."""
    paths = [model(tmp_path, number, suffix, format="tvm-ffi") for number in (1, 2)]
    library = packer.link_library(paths, tmp_path / "both.so") if suffix != "so" else paths[0]
    defined = subprocess.check_output(["nm", "-D", "--defined-only", library], text=True).split()
    assert {"net1___tvm_ffi__metadata_add", "net1___tvm_ffi__library_bin"} <= set(defined)
    assert beside_python(library, "[m['add'](40, 2), m.function_names()]") == [42, ["add"]]


def test_cpp_models_keep_their_template_instances(tmp_path) -> None:
    """Symbols that C++ defines in every object stay separate for each model; exceptions work."""
    code = """
    #include <stdexcept>
    #include <vector>
    template <typename T> struct Scale {{ static T by() {{ return {0}; }} }};
    inline long seen() {{ static long count = {0}; return count; }}
    extern "C" long add(long a, long b) {{
      std::vector<long> values(3, Scale<long>::by());
      try {{ if (b == 2) throw std::runtime_error("two"); }}
      catch (const std::exception &) {{ return a * values.at(1) + seen() + b; }}
      return 0;
    }}
    """
    models = []
    for number in (1, 2):
        declared = {"add": "long(long a, long b)"}
        root = packer.CSourceModule(code.format(number), fmt="cc", functions=declared)
        models.append(model(tmp_path, number, root=root))
    assert linked(tmp_path, *models, "-lstdc++")[:2] == ["43", "84"]


def test_same_prefix_twice_is_refused_by_the_linker(tmp_path) -> None:
    """The symbols themselves clash; the linker names one."""
    first = model(tmp_path, 1)
    (tmp_path / "other").mkdir()
    second = model(tmp_path / "other", 1)
    (tmp_path / "main.c").write_text(MAIN)
    command = ["cc", f"-I{INCLUDE}", "main.c", first, second]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "multiple definition of `" in done.stderr


def test_name_registered_twice_is_an_error_and_the_first_stays(tmp_path) -> None:
    """A name with another address is refused; with the same one it has no effect."""
    (tmp_path / "again.c").write_text(
        f"{REGISTER}static int mine;\n"
        "__attribute__((constructor(65535))) static void again(void) {\n"
        '  extern char net1_add; TVMBackendRegisterSystemLibSymbol("other", &net1_add);\n'
        '  TVMBackendRegisterSystemLibSymbol("other", &net1_add);\n'
        '  TVMBackendRegisterSystemLibSymbol("other", &mine);\n}\n'
    )
    (tmp_path / "main.c").write_text(MAIN)
    command = ["cc", f"-I{INCLUDE}", "main.c", "again.c", model(tmp_path, 1), model(tmp_path, 2)]
    subprocess.run([*command, "-o", "main"], cwd=tmp_path, check=True)
    done = subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == PRINTED
    assert done.stderr == (
        "dso-packer: 'other' is registered twice, expected once: give each model a different "
        "prefix (packer export --c-symbol-prefix)\n"
    )


@pytest.fixture(params=["aarch64", "riscv64"])
def machine(request) -> str:
    """Another machine, for which there are a compiler and an emulator."""
    needs.program(f"{request.param}-linux-gnu-gcc", f"qemu-{request.param}")
    return request.param


def printed_on(machine: str, source: str, folder: Path, *models: Path) -> bytes:
    """Return the output of a C program that another machine's compiler links with models."""
    (folder / "main.c").write_text(source)
    compiler = [f"{machine}-linux-gnu-gcc", "-static", f"-I{INCLUDE}"]
    subprocess.run([*compiler, "main.c", *models, "-o", "main"], cwd=folder, check=True)
    return subprocess.check_output([f"qemu-{machine}", "main"], cwd=folder)


def test_program_for_another_machine(machine, tmp_path) -> None:
    """Objects for another target, linked by its compiler and run by an emulator."""
    target = f"{machine}-linux-gnu"
    models = [
        model(tmp_path, n, build=packer.Build(target=target, embed=e))
        for n, e in ((1, "llvm"), (2, "c"))
    ]
    assert printed_on(machine, MAIN, tmp_path, *models).decode().splitlines() == PRINTED


BLOB = """
#define DSO_SYSTEM_LIB_IMPLEMENTATION
#include "dso_packer_system_lib.h"

int main(void) {
  for (const dso_system_symbol *s = dso_system_lib_symbols(); s; s = s->next)
    if (!strcmp(s->name, "net1___tvm_dev_mblob"))
      fwrite(s->address, 1, 8 + *(const uint64_t *)s->address, stdout);
  return 0;
}
"""


@pytest.mark.parametrize("suffix", ["o", "a"])
def test_large_payload_registers_on_another_machine(machine, suffix, tmp_path) -> None:
    """Beyond 1 MiB the target's own assembler takes the bytes: LLVM has none for it."""
    payload = bytes(range(256)) * 5000
    root, target = tree(1, payload), f"{machine}-linux-gnu"
    made = model(tmp_path, 1, suffix, root=root, build=packer.Build(target=target, embed="llvm"))
    # An archive is named by its object, so a linker takes it without an option.
    blob = printed_on(machine, BLOB, tmp_path, made, "-Wl,-u,net1___tvm_dev_mblob")
    assert payload in blob
    assert len(blob) == 8 + int.from_bytes(blob[:8], "little")


def test_program_of_the_documentation(tmp_path) -> None:
    """docs/outputs.md: its C program and its Python."""
    text = (DOCS / "outputs.md").read_text()
    (program,) = re.findall(r"```c\n(.*?)```", text, re.DOTALL)
    *_, python = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    models = [model(tmp_path, number) for number in (1, 2)]
    (tmp_path / "main.c").write_text(program)
    command = ["cc", "-Wall", "-Wextra", "-Werror", f"-I{INCLUDE}", "main.c", *models, "-o", "main"]
    subprocess.run(command, cwd=tmp_path, check=True)
    assert subprocess.check_output([tmp_path / "main"], text=True) == "42\n"
    code = f"import os, packer, runtime; os.chdir({str(tmp_path)!r})\n{python}print(1)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout.split()[-1:]) == (0, ["1"]), run.stderr
    assert run.stderr.endswith(" TVMBackendRegisterSystemLibSymbol; runtime.load does\n")
